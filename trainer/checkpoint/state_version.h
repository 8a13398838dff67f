// Identifies a training state, so that ranks can tell whether they hold parts of the same one. Value type.
#pragma once

#include <compare>
#include <cstdint>

namespace sailor {

// Two states belong together if both members are equal. Steps are not sufficient: training that went back to
// an earlier step, or continued under another plan, reaches the same step with other bits. So the ranks of
// every generation draw a random lineage for their steps.
struct StateVersion {
  int64_t steps_done = 0;
  int64_t lineage = 0;

  auto operator<=>(const StateVersion&) const = default;
};

}  // namespace sailor
