// The user's own resource options in a planned submission. Options that select nodes restrict the planner;
// options that select amounts contradict a plan and are rejected; all others (--account, --qos, --dependency,
// --begin, --signal, ...) stay in the command for Slurm. Pure: options are queried by their long name.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/inputs/submit_options.h"
#include "planner/inputs/submitted_limits.h"
#include "planner/spec/job_spec.h"
#include "spank_plugin/slurm/live_cluster.h"

namespace sailor {

// Throws InputError naming the first option that contradicts a plan, and what to do.
void refuse_contradictions(const OptionLookup& option);

// --partition, --nodelist, --exclude, --constraint, --nodes (its upper end), --reservation, --time, --account
// and --qos as limits; --exclusive, --cpus-per-task and --mem as what the job asks for. Partitions: those of
// --sailor-partitions, else of --partition, else of the job spec.
NodeWishes node_wishes(const OptionLookup& option, const SubmitOptions& options, const JobSpec& job);

// The options that Slurm does not pass from the first component of a heterogeneous job to the others.
std::vector<std::string> repeated_options(const OptionLookup& option);

// Why the job will not start when it is submitted ("--begin"); empty if it may. The currently free nodes say
// little about such a job.
std::string reason_to_start_later(const OptionLookup& option);

}  // namespace sailor
