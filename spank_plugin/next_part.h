// Submissions of one training after the other (planner/scheduler/continuation.h), on the plugin's side.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/inputs/carried_plan.h"
#include "planner/inputs/submit_options.h"
#include "planner/scheduler/continuation.h"
#include "planner/spec/job_spec.h"

namespace sailor {

// The part that this submission continues; nothing if it is a first one. Removes it from the environment, so
// that jobs do not inherit it. Throws std::runtime_error when it is damaged.
std::optional<PreviousPart> take_previous_part();

// What the job carries so that it can be submitted again: the options of its command line, the arguments of
// its script, and the variables of this process that are defaults of options.
Resubmission resubmission_of(const std::vector<GivenOption>& options, std::vector<std::string> arguments);

// Adds what the job's controller needs to know about the training as a sequence of jobs (carried_plan.h).
void add_chain_variables(EnvironmentVariables& variables, const SubmitOptions& options, const JobSpec& job,
                         const Resubmission& submission, const std::optional<PreviousPart>& previous);

}  // namespace sailor
