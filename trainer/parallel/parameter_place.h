// Maps the elements that a rank holds of a parameter to the unsharded parameter, and tells padding from real
// elements: the last rows of a vocabulary matrix may be padding, as required by the plan. Elements are
// counted along the flat parameter. Pure.
#pragma once

#include <map>
#include <string>

#include "planner/plan/rank_layout.h"
#include "planner/spec/job_spec.h"
#include "trainer/model/parameter.h"

namespace sailor {

// What the job trains, by name, with the padding of this layout's plan. The names, and so the order, are the
// same under every plan.
std::map<std::string, ParameterSpec> specs_by_name(const JobSpec& job, const RankLayout& layout);

int64_t row_elements(const ParameterSpec& spec);
int64_t real_elements(const ParameterSpec& spec);  // of the unsharded parameter
// The part of a slot's rank: `held_elements` from element `base_of` of the unsharded parameter on.
int64_t base_of(const RankSlot& slot, const ParameterSpec& spec);
int64_t held_elements(const RankSlot& slot, const ParameterSpec& spec);

}  // namespace sailor
