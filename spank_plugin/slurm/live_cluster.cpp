#include "spank_plugin/slurm/live_cluster.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <slurm/slurm.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "planner/spec/error.h"
#include "planner/spec/name_list.h"
#include "planner/spec/text.h"
#include "spank_plugin/slurm/billing.h"
#include "spank_plugin/slurm/commands/gres.h"
#include "spank_plugin/slurm/feature_expression.h"
#include "spank_plugin/slurm/gpu_budget.h"
#include "spank_plugin/slurm/waiting_jobs.h"

namespace sailor {
namespace {

// The reservation that prevents a job from starting now; nullptr if there is none.
const SlurmReservation* conflicting_reservation(const SlurmView& view, const std::string& node,
                                                double job_time_s, const std::string& own_reservation) {
  for (const SlurmReservation& reservation : view.reservations) {
    if (reservation.name == own_reservation) continue;
    bool overlaps = static_cast<double>(reservation.start) < static_cast<double>(view.now) + job_time_s &&
                    reservation.end > view.now;
    if (overlaps && contains(reservation.nodes, node)) return &reservation;
  }
  return nullptr;
}

// The reservation that the job is to use; nullptr when it uses none.
const SlurmReservation* own_reservation(const SlurmView& view, const NodeWishes& wishes) {
  if (wishes.reservation.empty()) return nullptr;
  std::vector<std::string> names;
  for (const SlurmReservation& reservation : view.reservations) {
    if (reservation.name != wishes.reservation) {
      names.push_back(reservation.name);
      continue;
    }
    if (reservation.end <= view.now)
      throw InputError(fmt::format("reservation {} is over", in_quotes(reservation.name)));
    if (reservation.start > view.now && !wishes.include_busy) {
      throw InputError(fmt::format(
          "reservation {} begins in {} minutes; submit then, or wait for it with --sailor-wait=nodes",
          in_quotes(reservation.name), (reservation.start - view.now + 59) / 60));
    }
    return &reservation;
  }
  throw InputError(fmt::format("reservation {}: no such reservation{}", in_quotes(wishes.reservation),
                               did_you_mean(wishes.reservation, names)));
}

// How long the job may run in this partition; without any limit every reservation to come is in its way.
double job_time_s(const SlurmPartition& partition, const NodeWishes& wishes) {
  constexpr double kForEver = 1e12;
  if (wishes.time_limit_s) return *wishes.time_limit_s;
  if (partition.default_time_s) return *partition.default_time_s;
  return partition.max_time_s.value_or(kForEver);
}

// The first rule that names one of the node's partitions or features.
const ZoneRule& zone_of(const SlurmNode& node, const std::vector<std::string>& partitions,
                        const SiteConfig& site) {
  auto common = [](const std::vector<std::string>& a, const std::vector<std::string>& b) {
    return std::any_of(a.begin(), a.end(), [&](const std::string& value) { return contains(b, value); });
  };
  for (const ZoneRule& rule : site.zones) {
    if (common(rule.partitions, partitions) || common(rule.features, node.features)) return rule;
  }
  return site.default_zone;
}

// The state of a node that only has to be waited for, in the fewest words.
std::string busy_state(const SlurmNode& node, const NodeNeeds& needs) {
  if (node.state & NODE_STATE_COMPLETING) return "completing a job";
  if (node.state & NODE_STATE_PLANNED) return "planned for another job";
  if (use_by_running_jobs(node, needs)) return "in use";
  return node.promised_to != 0 ? "waited for by another job" : "powered down";
}

// Of a job that takes the node whole, in this partition.
double units_of(const SlurmNode& node, const SlurmPartition& partition, bool largest) {
  BilledNode billed{node.cpus, node.memory_mb, {}};
  if (partition.memory_per_cpu_mb > 0)
    billed.memory_mb = std::min(node.memory_mb, partition.memory_per_cpu_mb * node.cpus);
  else if (partition.memory_per_node_mb > 0)
    billed.memory_mb = std::min(node.memory_mb, partition.memory_per_node_mb);
  for (const Gres& gres : parse_gres(node.gres)) {
    billed.gres[gres.name] += gres.count;
    if (!gres.type.empty()) billed.gres[gres.name + ":" + gres.type] += gres.count;
  }
  return billing_units(partition.billing_weights, billed, largest);
}

// Decides node by node; keeps what is the same for all of them.
class Offers {
 public:
  // `limits`: of QOS and associations, by partition.
  Offers(const SlurmView& view, const SiteConfig& site, const NodeWishes& wishes, PartitionLimits limits)
      : view_(view),
        site_(site),
        wishes_(wishes),
        partitions_(usable_partitions(view, site.umbrella_partition, wishes)),
        reservation_(own_reservation(view, wishes)) {
    if (!wishes.features.empty()) satisfies({}, wishes.features);  // checks the syntax, even without nodes
    check_names(wishes.only_nodes, "--nodelist");
    for (const SlurmPartition& partition : view.partitions) {
      for (const std::string& node : partition.nodes) all_partitions_of_[node].push_back(partition.name);
    }
    for (const SlurmPartition* partition : partitions_) {
      for (const std::string& node : partition->nodes) usable_partitions_of_[node].push_back(partition);
    }
    bool whole = false;
    for (const SlurmPartition* partition : partitions_) whole = whole || takes_whole_nodes(*partition);
    std::erase_if(limits, [&](const auto& of_partition) {
      return std::none_of(partitions_.begin(), partitions_.end(), [&](const SlurmPartition* partition) {
        return partition->name == of_partition.first;
      });
    });
    budget_ = GpuBudget(limits, whole, cpus_of_rank().value_or(1), site);
  }

  LiveCluster collect() {
    LiveCluster cluster;
    cluster.now = view_.now;
    cluster.snapshot.file = "slurm";
    cluster.snapshot.time_s = view_.now;
    cluster.snapshot.queue = waiting_jobs(view_);
    cluster.snapshot.limits = budget_.planner_limits();
    cluster.limits = budget_.of_job();
    if (const auto jobs = cluster.limits.find("job"); jobs != cluster.limits.end() && jobs->second.most == 0)
      cluster.notes.push_back(jobs->second.reason + ": the job waits until one has ended");
    cluster.snapshot.usd_per_hour = site_.usd_per_hour;
    cluster.snapshot.spot_usd_per_hour = site_.spot_usd_per_hour;
    cluster.snapshot.usd_per_unit_hour = site_.usd_per_unit_hour;
    cluster.snapshot.egress_usd_per_gb = site_.egress_usd_per_gb;
    for (const SlurmNode& node : view_.nodes) {
      const std::vector<NodeGpus> gpus = gpus_of(node);
      if (gpus.empty()) continue;  // not a GPU node: not worth a word
      if (std::optional<std::string> obstacle = obstacle_of(node, wishes_.include_busy)) {
        cluster.snapshot.not_free.push_back(node.name + ": " + *obstacle);
        if (!wishes_.include_busy && !obstacle_of(node, true)) note_busy(node, gpus, cluster);
        continue;
      }
      offer(node, gpus, cluster);
    }
    keep_within_partition_limits(cluster.snapshot.busy);
    std::set<std::string> offered;
    for (const SnapshotNode& node : cluster.snapshot.nodes) offered.insert(node.name);
    for (const SlurmPartition* partition : partitions_) {
      LivePartition live{partition->name, partition->max_nodes, {}, takes_whole_nodes(*partition)};
      for (const std::string& node : partition->nodes) {
        if (offered.count(node) > 0) live.nodes.push_back(node);
      }
      live.all = all_nodes_of(*partition);
      cluster.partitions.push_back(std::move(live));
    }
    return cluster;
  }

 private:
  // Why the job cannot have the node: now, or also when it waits for those who hold it.
  std::optional<std::string> obstacle_of(const SlurmNode& node, bool include_busy) {
    auto it = usable_partitions_of_.find(node.name);
    if (it == usable_partitions_of_.end()) return partition_reason(node.name);
    if (contains(wishes_.excluded_nodes, node.name)) return "excluded with --exclude";
    if (!wishes_.only_nodes.empty() && !contains(wishes_.only_nodes, node.name)) return "not in --nodelist";
    if (!wishes_.features.empty() && !satisfies(node.features, wishes_.features))
      return "has not the features of --constraint";
    bool in_reservation = reservation_ != nullptr && contains(reservation_->nodes, node.name);
    if (reservation_ != nullptr && !in_reservation)
      return fmt::format("not in reservation {}", reservation_->name);
    if (std::optional<std::string> obstacle = state_obstacle(node.state, {in_reservation, !include_busy}))
      return obstacle;
    const SlurmPartition& partition = *it->second.front();
    if (!include_busy) {
      if (std::optional<std::string> use = use_by_others(node, least_needs(partition))) return use;
    }
    if (const SlurmReservation* reservation =
            conflicting_reservation(view_, node.name, job_time_s(partition, wishes_), wishes_.reservation)) {
      return fmt::format("reserved by {}", reservation->name);
    }
    // A job may take no more than MaxNodes of a partition: the first ones are as good as any.
    if (partition.max_nodes && offered_[partition.name] >= *partition.max_nodes) {
      return fmt::format("partition {} allows {} nodes per job", partition.name, *partition.max_nodes);
    }
    return budget_.obstacle(partition.name, gpus_of(node), takes_whole_nodes(partition));
  }

  // Why none of the node's partitions can be used.
  std::string partition_reason(const std::string& node) const {
    auto it = all_partitions_of_.find(node);
    if (it == all_partitions_of_.end()) return "in no partition that is open to you";
    for (const SlurmPartition& partition : view_.partitions) {
      if (!contains(it->second, partition.name)) continue;
      if (std::optional<std::string> obstacle = partition_obstacle(partition, wishes_)) {
        return fmt::format("partition {} {}", partition.name, *obstacle);
      }
    }
    return fmt::format("not in partition {}", fmt::join(wishes_.partitions, ", "));
  }

  void check_names(const std::vector<std::string>& names, const char* option) const {
    for (const std::string& name : names) {
      bool known = std::any_of(view_.nodes.begin(), view_.nodes.end(),
                               [&](const SlurmNode& node) { return node.name == name; });
      if (!known) throw InputError(fmt::format("{}: this cluster has no node {}", option, in_quotes(name)));
    }
  }

  std::vector<PartitionNode> all_nodes_of(const SlurmPartition& partition) const {
    const std::set<std::string> members(partition.nodes.begin(), partition.nodes.end());
    std::vector<PartitionNode> nodes;
    for (const SlurmNode& node : view_.nodes) {
      if (!members.contains(node.name) || contains(wishes_.excluded_nodes, node.name)) continue;
      if (reservation_ != nullptr && !contains(reservation_->nodes, node.name)) continue;
      if (!wishes_.features.empty() && !satisfies(node.features, wishes_.features)) continue;
      PartitionNode entry{
          node.name, zone_of(node, all_partitions_of_.at(node.name), site_).zone, {}, node.features};
      for (const NodeGpus& gpus : gpus_of(node)) entry.gpus[gres_name(gpus)] += gpus.count;
      if (!entry.gpus.empty()) nodes.push_back(std::move(entry));
    }
    return nodes;
  }

  bool takes_whole_nodes(const SlurmPartition& partition) const {
    return wishes_.whole_nodes || site_.whole_nodes || partition.whole_nodes;
  }

  // One rank.
  NodeNeeds least_needs(const SlurmPartition& partition) const {
    return {takes_whole_nodes(partition), {}, cpus_of_rank().value_or(1), 0};
  }
  std::optional<int> cpus_of_rank() const {
    return wishes_.cpus_per_rank ? wishes_.cpus_per_rank : site_.cpus_per_rank;
  }

  // What the job gets of the node's GPUs of this type: those that are free, or all once it has waited.
  SnapshotNode snapshot_node(const SlurmNode& node, const NodeGpus& gpus, int first_index,
                             bool all_free) const {
    const ZoneRule& zone = zone_of(node, all_partitions_of_.at(node.name), site_);
    const SlurmPartition& partition = *usable_partitions_of_.at(node.name).front();
    const auto type = site_.gres.find(gpus.type);
    SnapshotNode entry;
    entry.name = node.name;
    entry.partition = partition.name;
    entry.zone = zone.zone;
    entry.region = zone.region;
    entry.gpu_type = type != site_.gres.end() ? type->second : (gpus.type.empty() ? "gpu" : gpus.type);
    entry.gpus = first_index + gpus.count;
    entry.leaf_switch = node.leaf_switch;
    entry.spot = zone.spot;
    entry.shared = !takes_whole_nodes(partition);
    entry.host.gres = gres_name(gpus);
    int free = gpus.count;
    if (entry.shared) {
      free = budget_.within(partition.name, gpus.type, all_free ? gpus.count : gpus.free());
      const int free_cpus = node.cpus - (all_free ? 0 : node.allocated_cpus);
      const int64_t free_mb = node.memory_mb - (all_free ? 0 : node.allocated_memory_mb);
      if (node.cpus > 0) free = std::min(free, free_cpus / cpus_of_rank().value_or(1));
      entry.host.cpus = free * cpus_of(node, free_cpus, free);
      if (node.memory_mb > 1) entry.host.memory_bytes = free_mb << 20;  // 1: the site does not say
    }
    entry.free_gpus.resize(static_cast<size_t>(free));
    std::iota(entry.free_gpus.begin(), entry.free_gpus.end(), first_index);
    if (site_.usd_per_unit_hour) entry.billing_units = units_of(node, partition, view_.largest_weight_counts);
    return entry;
  }

  // Processors of a rank: its GPU's share of the node, or of what is free there. 0 = unknown.
  int cpus_of(const SlurmNode& node, int free_cpus, int ranks) const {
    if (ranks == 0) return 0;
    if (const std::optional<int> given = cpus_of_rank()) return *given;
    if (node.cpus == 0) return 0;
    int gpus = 0;
    for (const NodeGpus& of_type : gpus_of(node)) gpus += of_type.count;
    return std::max(1, std::min(node.cpus / gpus, free_cpus / ranks));
  }

  void offer(const SlurmNode& node, const std::vector<NodeGpus>& gpus, LiveCluster& cluster) {
    ++offered_[usable_partitions_of_.at(node.name).front()->name];
    int first_index = 0;
    std::set<std::string> types;
    for (const NodeGpus& of_type : gpus) {
      SnapshotNode entry = snapshot_node(node, of_type, first_index, wishes_.include_busy);
      first_index += of_type.count;
      if (!types.insert(entry.gpu_type).second) {
        cluster.snapshot.not_free.push_back(
            fmt::format("{}: {} is GPU type {} as well: only the first counts", node.name, gres_name(of_type),
                        entry.gpu_type));
        continue;
      }
      budget_.take(entry.partition, of_type.type, static_cast<int>(entry.free_gpus.size()));
      cluster.snapshot.nodes.push_back(std::move(entry));
    }
  }

  void note_busy(const SlurmNode& node, const std::vector<NodeGpus>& gpus, LiveCluster& cluster) const {
    const NodeNeeds needs = least_needs(*usable_partitions_of_.at(node.name).front());
    // A job that waits for the node gets it first.
    const bool others_wait = node.promised_to != 0 || (node.state & NODE_STATE_PLANNED) != 0;
    std::optional<double> end_in_s;
    if (!use_by_running_jobs(node, needs)) {
      if (others_wait && !state_obstacle(node.state)) end_in_s = 0;  // until then it is idle
    } else if (node.jobs_end) {
      end_in_s = static_cast<double>(std::max<int64_t>(0, *node.jobs_end - view_.now));
    }
    int first_index = 0;
    for (const NodeGpus& of_type : gpus) {
      BusyNode busy{snapshot_node(node, of_type, first_index, true), busy_state(node, needs), std::nullopt};
      (others_wait ? busy.jobs_end_in_s : busy.free_in_s) = end_in_s;
      cluster.snapshot.busy.push_back(std::move(busy));
      first_index += of_type.count;
    }
  }

  // Of the busy nodes, those that a job could have in addition to the free ones, the first ones to become
  // free.
  void keep_within_partition_limits(std::vector<BusyNode>& busy) const {
    std::map<std::string, int> left;  // by partition
    for (const SlurmPartition* partition : partitions_) {
      if (!partition->max_nodes) continue;
      auto offered = offered_.find(partition->name);
      left[partition->name] = *partition->max_nodes - (offered == offered_.end() ? 0 : offered->second);
    }
    if (left.empty()) return;
    const double kNobodyKnows = 1e18;
    std::stable_sort(busy.begin(), busy.end(), [kNobodyKnows](const BusyNode& a, const BusyNode& b) {
      return a.free_in_s.value_or(kNobodyKnows) < b.free_in_s.value_or(kNobodyKnows);
    });
    std::erase_if(busy, [&](const BusyNode& node) {
      auto it = left.find(node.node.partition);
      return it != left.end() && it->second-- <= 0;
    });
  }

  const SlurmView& view_;
  const SiteConfig& site_;
  const NodeWishes& wishes_;
  std::vector<const SlurmPartition*> partitions_;
  const SlurmReservation* reservation_;                                // that the job uses; nullptr = none
  std::map<std::string, std::vector<std::string>> all_partitions_of_;  // by node
  std::map<std::string, std::vector<const SlurmPartition*>> usable_partitions_of_;  // by node
  std::map<std::string, int> offered_;                                              // nodes, by partition
  GpuBudget budget_;
};

}  // namespace

std::optional<std::string> state_obstacle(uint32_t state, const StateNeeds& needs) {
  uint32_t base = state & NODE_STATE_BASE;
  if (base == NODE_STATE_DOWN) return "down";
  if (state & (NODE_STATE_DRAIN | NODE_STATE_POWER_DRAIN)) return "drained";
  if (state & NODE_STATE_FAIL) return "failing";
  if (state & NODE_STATE_NO_RESPOND) return "not responding";
  if (!needs.in_reservation) {
    if (state & NODE_STATE_MAINT) return "in maintenance";
    if (state & NODE_STATE_RES) return "reserved";
  }
  if (state & (NODE_STATE_REBOOT_REQUESTED | NODE_STATE_REBOOT_ISSUED)) return "rebooting";
  if (needs.now && (state & (NODE_STATE_POWERED_DOWN | NODE_STATE_POWERING_DOWN | NODE_STATE_POWERING_UP |
                             NODE_STATE_POWER_DOWN | NODE_STATE_POWER_UP))) {
    return "powered down or powering";
  }
  if (state & NODE_STATE_INVALID_REG) return "invalid registration";
  if (base != NODE_STATE_IDLE && base != NODE_STATE_ALLOCATED && base != NODE_STATE_MIXED)
    return "in an unknown state";
  return std::nullopt;
}

LiveCluster live_cluster(const SlurmView& view, const SiteConfig& site, const NodeWishes& wishes) {
  if (!view.accounting) return Offers(view, site, wishes, {}).collect();
  const Accounting& accounting = *view.accounting;
  SlurmView allowed = view;
  NodeWishes resolved = wishes;
  static_cast<PartitionWishes&>(resolved) = with_defaults(wishes, accounting);
  PartitionLimits limits;
  for (SlurmPartition& partition : allowed.partitions) {
    JobLimits found = limits_in(partition, resolved, accounting, wishes.include_busy);
    partition.limit = std::move(found.obstacle);
    limits[partition.name] = std::move(found.on_tres);
    if (found.ignores_time_limit) partition.max_time_s.reset();
    if (found.ignores_node_limit) partition.max_nodes.reset();
  }
  LiveCluster cluster = Offers(allowed, site, resolved, std::move(limits)).collect();
  if (!accounting.note.empty()) cluster.notes.push_back(accounting.note);
  return cluster;
}

}  // namespace sailor
