#include "spank_plugin/slurm/partition_rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "planner/spec/error.h"
#include "planner/spec/name_list.h"
#include "planner/spec/text.h"

namespace sailor {
namespace {

// Slurm compares accounts and QOS by name; without a name it takes the user's default, which only it knows.
std::optional<std::string> name_obstacle(const std::string& name, const std::vector<std::string>& allowed,
                                         const std::vector<std::string>& denied, const char* what) {
  if (name.empty()) return std::nullopt;
  // Slurm looks at the denied ones only where none are allowed by name.
  bool refused = allowed.empty() ? contains(denied, name) : !contains(allowed, name);
  if (!refused) return std::nullopt;
  return fmt::format("is not open to {} {}", what, name);
}

}  // namespace

std::optional<std::string> partition_obstacle(const SlurmPartition& partition,
                                              const PartitionWishes& wishes) {
  if (!partition.up) return "is not up";
  if (partition.root_only) return "is open only to root";
  if (partition.needs_reservation && wishes.reservation.empty()) return "is open only with a reservation";
  if (!partition.limit.empty()) return "cannot be used: " + partition.limit;
  if (wishes.time_limit_s && partition.max_time_s && *wishes.time_limit_s > *partition.max_time_s) {
    return fmt::format("allows jobs of {:.0f} minutes at most", *partition.max_time_s / 60);
  }
  if (std::optional<std::string> obstacle =
          name_obstacle(wishes.account, partition.allowed_accounts, partition.denied_accounts, "account"))
    return obstacle;
  return name_obstacle(wishes.qos, partition.allowed_qos, partition.denied_qos, "QOS");
}

std::vector<const SlurmPartition*> usable_partitions(const SlurmView& view,
                                                     const std::string& umbrella_partition,
                                                     const PartitionWishes& wishes) {
  std::vector<std::string> names;
  for (const SlurmPartition& partition : view.partitions) names.push_back(partition.name);
  for (const std::string& wished : wishes.partitions) {
    if (!contains(names, wished)) {
      throw InputError(fmt::format("partition {}: does not exist or is not open to you{} (partitions: {})",
                                   in_quotes(wished), did_you_mean(wished, names), fmt::join(names, ", ")));
    }
  }
  std::string of_reservation;
  for (const SlurmReservation& reservation : view.reservations) {
    if (!wishes.reservation.empty() && reservation.name == wishes.reservation)
      of_reservation = reservation.partition;
  }
  std::vector<const SlurmPartition*> usable;
  for (const SlurmPartition& partition : view.partitions) {
    if (!of_reservation.empty() && partition.name != of_reservation) continue;
    bool wished = wishes.partitions.empty() || contains(wishes.partitions, partition.name);
    if (wished && !partition_obstacle(partition, wishes)) usable.push_back(&partition);
  }
  // As sbatch would choose, the umbrella partition last.
  const auto place = [&](const SlurmPartition* partition) {
    if (partition->name == umbrella_partition) return 2;
    return partition->is_default && wishes.partitions.empty() ? 0 : 1;
  };
  std::stable_sort(usable.begin(), usable.end(),
                   [&](const SlurmPartition* a, const SlurmPartition* b) { return place(a) < place(b); });
  return usable;
}

}  // namespace sailor
