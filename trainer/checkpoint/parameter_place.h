// Where the elements that a rank holds of a parameter stand in the whole parameter, and which of them are
// real: the last rows of a matrix of the vocabulary may be padding, as many as the plan needs. Elements are
// counted along the flat parameter. Pure.
#pragma once

#include <map>
#include <string>

#include "planner/plan/rank_layout.h"
#include "planner/spec/job_spec.h"
#include "trainer/model/parameter.h"

namespace sailor {

// The parameters of the job's model by name, with the padding that a plan of this layout needs. The names,
// and so the order, are the same under every plan.
std::map<std::string, ParameterSpec> specs_by_name(const JobSpec& job, const RankLayout& layout);

int64_t row_elements(const ParameterSpec& spec);
int64_t real_elements(const ParameterSpec& spec);  // of the whole parameter
// What the rank of a slot holds: `held_elements` from element `base_of` of the whole parameter on.
int64_t base_of(const RankSlot& slot, const ParameterSpec& spec);
int64_t held_elements(const RankSlot& slot, const ParameterSpec& spec);

}  // namespace sailor
