// Which partitions a job of this user may use at all. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "spank_plugin/slurm/slurm_view.h"

namespace sailor {

// What of a submission partitions have rules for.
struct PartitionWishes {
  std::vector<std::string> partitions;  // only these; empty = all that are open
  std::optional<double> time_limit_s;   // of the job
  std::string account;                  // empty = not said: what Slurm then takes is not known
  std::string qos;                      // likewise
  std::string reservation;              // empty = none
};

// Why this user's job cannot use the partition, to be read after its name ("is not up"); nothing when it can.
std::optional<std::string> partition_obstacle(const SlurmPartition& partition, const PartitionWishes& wishes);

// Those that can be used, in Slurm's order but the umbrella partition (may be empty) last. Throws InputError
// when a wished-for partition does not exist.
std::vector<const SlurmPartition*> usable_partitions(const SlurmView& view,
                                                     const std::string& umbrella_partition,
                                                     const PartitionWishes& wishes);

}  // namespace sailor
