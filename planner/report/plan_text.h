// How plans and their figures are written in tables: shared by the tables of candidates and of the front.
// Internal to planner/report.
#pragma once

#include <string>

#include "planner/plan/plan.h"
#include "planner/search/search.h"
#include "planner/simulator/prediction.h"

namespace sailor {

// At most `width` characters; what is longer ends in "..".
std::string cut_to(std::string text, size_t width);
// GPUs that a plan uses: "4 A + 2 B".
std::string gpus_by_type(const Plan& plan);
// Kinds of pipelines by the TP degrees of their stages, each with how often it occurs: "2x(4,1) + 1x(2)".
std::string layout(const Plan& plan);
// What stands before a number that rests on estimated layer times, and the line that explains it.
std::string estimate_mark(const Prediction& prediction);
std::string estimate_note(double uncertainty);
const char* status_name(SearchStatus status);

}  // namespace sailor
