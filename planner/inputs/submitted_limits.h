// The limits of a submission that apply during the whole job: an elastic job replans under the same objective
// and limits, on nodes that the submission could have used. Sent with the job as SAILOR_LIMITS
// (carried_plan.h), a JSON object of options by name. Pure except submitted_limits().
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "planner/inputs/submit_options.h"
#include "planner/scheduler/scheduler.h"
#include "planner/spec/job_spec.h"

namespace sailor {

// An option's value from the command line, an #SBATCH line or the environment; nothing when not given.
using OptionLookup = std::function<std::optional<std::string>(const char* name)>;

// The limits among the options of a submission, Slurm's own included, as text.
std::string limits_text(const OptionValues& given, const OptionLookup& slurm_option);

struct SubmittedLimits {
  PlanOverrides overrides;
  std::vector<std::string> node_limits;  // arguments of sailor-cluster
  std::optional<int> most_nodes;
};
// Parses such a text; an empty one has only the limits of the job spec. Throws InputError.
SubmittedLimits parse_limits(const std::string& text, const JobSpec& job);
// The limits of this process's job.
SubmittedLimits submitted_limits(const JobSpec& job, const Scheduler& scheduler);

}  // namespace sailor
