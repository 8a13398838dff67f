// What a plan does besides cutting the model over GPUs, for people. Pure.
#pragma once

#include <string>
#include <vector>

#include "planner/plan/plan.h"

namespace sailor {

// "0-3,6" of ascending numbers.
std::string number_ranges(const std::vector<int>& numbers);
// The stages that recompute activations, in all pipelines: "0-1"; "all" of them; "some" where pipelines
// differ; empty for none.
std::string recomputing_stages(const Plan& plan);
// "zero1 recompute:0-1 interleave:2": ZeRO-1; the stages that recompute, without numbers where all do; chunks
// of the model per GPU. Empty for a plain plan.
std::string feature_text(const Plan& plan);

}  // namespace sailor
