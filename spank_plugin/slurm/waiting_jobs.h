// The jobs that wait before a new one, for the planner. Pure.
#pragma once

#include <optional>
#include <vector>

#include "planner/spec/snapshot.h"
#include "spank_plugin/slurm/partition_rules.h"
#include "spank_plugin/slurm/slurm_view.h"

namespace sailor {

// The first 200 of the queue, in its order. Those in partitions that the user does not see are left out.
std::vector<WaitingJob> waiting_jobs(const SlurmView& view);

// The time limit of a job: the user's, else the shortest of the partitions that it may use.
std::optional<double> job_length_s(const SlurmView& view, const PartitionWishes& wishes);

}  // namespace sailor
