// Training that loses ranks at random points, and continues under other plans with the survivors' state.
#pragma once

#include <string>

#include "tests/equality/compare.h"

namespace sailor::equality {

struct LossesOutcome {
  Outcome outcome;      // of all steps of all generations, against the reference
  std::string story;    // losses, and the states that the others continued from
  std::string problem;  // a step that was lost unnecessarily; else empty
};

// `c` was made with lose_ranks. Ranks are threads, over the plane `thread` or `socket`. The training
// continues for `c.steps` after the last loss.
LossesOutcome train_with_losses(const CaseOptions& options, const Case& c, const std::string& plane,
                                const std::vector<ReferenceStep>& reference);

}  // namespace sailor::equality
