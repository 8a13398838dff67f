// Gathers unsharded parameters from the ranks of a plan.
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "planner/plan/plan.h"
#include "planner/plan/rank_layout.h"
#include "trainer/comm/communicator.h"
#include "trainer/model/parameter.h"

namespace sailor {

// Every rank of the plan calls this for the same parameters in the same order; `world` has all of them in
// their order. Returns on rank 0 the unsharded parameter, padding included, gathered from the first pipeline
// (all pipelines hold the same values), on every other rank an undefined tensor. `parameter.rows` includes
// the plan's padding. Throws CommError.
at::Tensor gather_on_first_rank(Communicator& world, const Plan& plan, const RankLayout& layout,
                                const ParameterSpec& parameter, const std::vector<Parameter*>& held);

}  // namespace sailor
