// Times that cannot be those of a layer: more sequences never take less time. A cell that says so was
// disturbed (small cases are launch-bound, and the hooks of a measurement cost most there). Pure.
#pragma once

#include "planner/profile/layer_profile.h"

namespace sailor {

// Replaces every forward and backward time above that of the next larger microbatch of the same shape and
// layer. A time is a fixed part and one per sequence, so the line through the next two larger microbatches
// continues: not above the next one, and not below the same time per sequence, since fewer sequences are not
// more efficient. With a single larger one its time is taken. A cell of which replacing changes at least 1 %
// counts as estimated from then on, with the distance to the next larger microbatch as its uncertainty.
void replace_disturbed_times(LayerProfile& profile);

}  // namespace sailor
