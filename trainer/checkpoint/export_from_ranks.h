// Writes the model of a running training, whose parameters several ranks hold, from rank 0.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/plan/rank_layout.h"
#include "planner/spec/job_spec.h"
#include "trainer/comm/communicator.h"
#include "trainer/model/parameter.h"

namespace sailor {

// Like export_model(), or with adapters export_adapters(). All ranks of `world` call it between the same two
// steps, each with the parameters that it holds. `gather` makes the values of a layer's parameters available,
// together with the others who hold them. Throws what those functions throw on rank 0, and CommError on the
// others then.
void export_from_ranks(const std::string& directory, const JobSpec& job, const Plan& plan,
                       const RankLayout& layout, Communicator& world, const std::vector<Parameter*>& held,
                       const std::function<void(int layer)>& gather);

}  // namespace sailor
