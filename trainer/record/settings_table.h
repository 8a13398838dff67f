// What a run says of itself before its first step.
#pragma once

#include <string>

#include "planner/plan/plan.h"
#include "planner/spec/job_spec.h"

namespace sailor {

// Two columns: what is trained, with which settings, on which GPUs. `data` describes what is trained on.
std::string settings_table(const JobSpec& job, const Plan& plan, const std::string& data,
                           double unigram_entropy, bool emulated, const std::string& directory);
}  // namespace sailor
