// Training that loses ranks at random points, and goes on under other plans with what the survivors have.
#pragma once

#include <string>

#include "tests/equality/compare.h"

namespace sailor::equality {

struct LossesOutcome {
  Outcome outcome;      // of all steps of all generations, against the reference
  std::string story;    // what was lost where, and what the others went on from
  std::string problem;  // a step was lost that need not have been; else empty
};

// `c` was made with lose_ranks. Ranks are threads, over the plane `thread` or `socket`. The training goes on
// for kSteps after the last loss.
LossesOutcome train_with_losses(const CaseOptions& options, const Case& c, const std::string& plane,
                                const std::vector<ReferenceStep>& reference);

}  // namespace sailor::equality
