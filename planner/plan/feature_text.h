// The features of a plan as text for tables. Pure.
#pragma once

#include <string>
#include <vector>

#include "planner/plan/plan.h"

namespace sailor {

// Ascending numbers as "0-3,6".
std::string number_ranges(const std::vector<int>& numbers);
// The stages that recompute activations, in all pipelines: "0-1"; "all"; "some" if pipelines differ; empty
// for none.
std::string recomputing_stages(const Plan& plan);
// The largest weight delay of any stage; kWholeBackward if no backward is split.
int most_weight_delay(const Plan& plan);
// "zero1", or "zero1:4" if each group of four pipelines has its own copy of the states. Empty without ZeRO.
std::string zero_text(const Plan& plan);
// "zero1 recompute:0-1 interleave:2 sp": ZeRO-1; the stages that recompute, without numbers if all do
// ("recompute-light" if no block does more than that); chunks of the model per GPU; tokens split over TP
// groups. "split-backward" if any stage splits its backward, and "offload" if any does. Empty without
// features.
std::string feature_text(const Plan& plan);
// What its stages keep in the memory of their nodes, in words; empty if nothing.
std::string offloaded_text(const Plan& plan);

}  // namespace sailor
