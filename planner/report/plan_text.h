// Text of plans and their values in tables: shared by the tables of candidates and of the front. Internal to
// planner/report.
#pragma once

#include <string>

#include "planner/plan/plan.h"
#include "planner/search/search.h"
#include "planner/simulator/prediction.h"

namespace sailor {

// At most `width` characters; longer text ends in "..".
std::string cut_to(std::string text, size_t width);
// Four digits, or all digits before the point: "2.5", "2525", "506812".
std::string rate_text(double per_s);
// GPUs that a plan uses: "4 A + 2 B".
std::string gpus_by_type(const Plan& plan);
// The same with zones, at most `width` characters: "4 A@z1 + 2 B@z2", or "6 A in 3 zones" if that is too
// long; without zones if `one_zone`.
std::string gpus_by_type_and_zone(const Plan& plan, bool one_zone, size_t width);
// Stages of a pipeline: "2", or "1-3" when pipelines differ.
std::string num_stages_text(const Plan& plan);
// The TP degrees of a pipeline's stages: "4,1", or "4" if all are equal; for several kinds of pipelines, each
// with its number: "2x(4,1)+1x(2)".
std::string tp_text(const Plan& plan);
// Sequences of a microbatch: "4", or "1,4" when pipelines differ.
std::string microbatch_text(const Plan& plan);
// Prefix of values that rest on estimated layer times, and the line that explains it.
std::string estimate_mark(const Prediction& prediction);
std::string estimate_note(double uncertainty);
std::string estimate_note(const Prediction& prediction);  // with the share of the times that are estimates
const char* status_name(SearchStatus status);

}  // namespace sailor
