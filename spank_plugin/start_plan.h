// Plans a submission, and chooses when it starts: now on free nodes, or later on nodes that others use. Pure,
// like planning.h.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "spank_plugin/planning.h"

namespace sailor {

// The cluster, as far as these wishes allow.
using WishedCluster = std::function<LiveCluster(const NodeWishes&)>;
// When Slurm would start a job on `count` of these nodes of a partition, in seconds since 1970; nothing if it
// cannot say. `limit_s` is its time limit; nothing = that of the submission.
using AskSlurm =
    std::function<std::optional<int64_t>(const std::string& partition, const std::vector<std::string>& among,
                                         size_t count, std::optional<double> limit_s)>;

// As plan_job(). If the options leave the start to the planner, the job has `training.steps`, and other jobs
// use nodes that it could have, the earliest end (or the deadline) decides; a job that will wait has
// PlannedJob::waits. If it is a chain with a time limit, it also has the least limit that suffices.
// `length_s` is its time limit. Throws Refusal when nothing ends before the deadline.
PlannedJob plan_with_start(const SubmitOptions& options, const JobSpec& job, const SiteConfig& site,
                           const NodeWishes& wishes, std::optional<double> length_s,
                           const WishedCluster& cluster, const AskSlurm& ask);

}  // namespace sailor
