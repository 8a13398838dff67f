// Asks slurmctld when a job would start. Needs an initialised libslurm in the process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "spank_plugin/slurm/partition_rules.h"

namespace sailor {

// A job on `count` of these nodes, whole, in one partition, with the user's time limit, account,
// QOS and reservation. Seconds since the epoch; nothing if Slurm would not accept or cannot place
// it. One RPC. Slurm counts running jobs, reservations and limits, but not the jobs that wait.
std::optional<int64_t> expected_start(const SlurmPartition& partition, const std::vector<std::string>& among,
                                      size_t count, const PartitionWishes& wishes);

}  // namespace sailor
