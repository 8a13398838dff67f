// The partitions that a job of this user may use. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "spank_plugin/slurm/slurm_view.h"

namespace sailor {

// Properties of a submission that partitions have rules for.
struct PartitionWishes {
  std::vector<std::string> partitions;  // only these; empty = all that are open
  std::optional<double> time_limit_s;   // of the job
  std::string account;                  // empty = not given: Slurm's default, which is unknown here
  std::string qos;                      // the same
  std::string reservation;              // empty = none
};

// Why this user's job cannot use the partition, as text after its name ("is not up"); nothing if it can.
std::optional<std::string> partition_obstacle(const SlurmPartition& partition, const PartitionWishes& wishes);

// Usable partitions in Slurm's order, but the default one first if none is requested, and the umbrella
// partition (may be empty) last. Throws InputError when a requested partition does not exist.
std::vector<const SlurmPartition*> usable_partitions(const SlurmView& view,
                                                     const std::string& umbrella_partition,
                                                     const PartitionWishes& wishes);

}  // namespace sailor
