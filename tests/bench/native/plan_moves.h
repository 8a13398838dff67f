// Random changes of placed plans, for the hill climb (hill_climb.h).
#pragma once

#include <optional>

#include "planner/plan/features.h"
#include "planner/simulator/simulate.h"
#include "tests/oracle/random.h"

namespace sailor::bench {

// The plan after a random move, valid and placed again; nothing if the drawn move does not apply to this
// plan. Requires a valid, placed plan.
std::optional<Plan> random_move(const PlanningContext& context, const PlanFeatures& allowed, const Plan& plan,
                                oracle::Random& random);

}  // namespace sailor::bench
