// Whole parameters out of the parts that the ranks of a plan hold.
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "planner/plan/plan.h"
#include "planner/plan/rank_layout.h"
#include "trainer/comm/communicator.h"
#include "trainer/model/parameter.h"

namespace sailor {

// Every rank of the plan calls this for the same parameters in the same order; `world` holds them all in
// their order. On rank 0 it returns the whole parameter, padding included, put together from the first
// pipeline (all pipelines hold the same values); on every other rank an undefined tensor. `parameter.rows`
// counts the plan's padding. Throws CommError.
at::Tensor gather_on_first_rank(Communicator& world, const Plan& plan, const RankLayout& layout,
                                const ParameterSpec& parameter, const std::vector<Parameter*>& held);

}  // namespace sailor
