// The settings that a run prints before its first step.
#pragma once

#include <string>

#include "planner/plan/plan.h"
#include "planner/spec/job_spec.h"

namespace sailor {

// Two columns: the model, the settings, the GPUs. `data` describes the training data.
std::string settings_table(const JobSpec& job, const Plan& plan, const std::string& data,
                           double unigram_entropy, bool emulated, const std::string& directory);
}  // namespace sailor
