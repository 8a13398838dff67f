#include "spank_plugin/slurm/account_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "spank_plugin/slurm/commands/gres.h"

namespace sailor {
namespace {

using Of = TresLimit::Of;

// Something with limits, by the name that messages give it.
struct Limited {
  std::string name;  // "QOS normal", "account physics"
  const AccountLimits* limits;
  bool is_parent = false;  // of the user's association: only its group limits count
};

const QosRecord* find_qos(const Accounting& accounting, const std::string& name) {
  const auto qos = std::find_if(accounting.qos.begin(), accounting.qos.end(),
                                [&](const QosRecord& record) { return record.name == name; });
  return qos == accounting.qos.end() ? nullptr : &*qos;
}

// The user's association with an account, there or everywhere; the default one for an empty name.
const AssociationRecord* association_of(const Accounting& accounting, const std::string& account,
                                        const std::string& partition) {
  const AssociationRecord* found = nullptr;
  for (const AssociationRecord& record : accounting.associations) {
    if (record.user.empty() || !(account.empty() ? record.is_default : record.account == account)) continue;
    if (record.partition == partition) return &record;
    if (record.partition.empty()) found = &record;
  }
  return found;
}

const AssociationRecord* account_record(const Accounting& accounting, const std::string& account) {
  for (const AssociationRecord& record : accounting.associations)
    if (record.user.empty() && record.account == account) return &record;
  return nullptr;
}

// QOS first, then the association, then the accounts above it.
std::vector<Limited> in_order(const QosRecord* of_partition, const QosRecord* of_job,
                              const AssociationRecord* association, const Accounting& accounting) {
  std::vector<Limited> order;
  if (of_job != nullptr && of_job->before_partition) std::swap(of_partition, of_job);
  for (const QosRecord* qos : {of_partition, of_job})
    if (qos != nullptr) order.push_back({"QOS " + qos->name, &qos->limits});
  if (association == nullptr) return order;
  order.push_back(
      {fmt::format("account {} for user {}", association->account, association->user), &association->limits});
  constexpr int kMostLevels = 64;
  std::string account = association->account;
  for (int level = 0; level < kMostLevels && !account.empty(); ++level) {
    const AssociationRecord* record = account_record(accounting, account);
    if (record == nullptr) break;
    order.push_back({"account " + account, &record->limits, true});
    account = record->parent;
  }
  return order;
}

std::string unit_of(const std::string& tres, bool one) {
  constexpr size_t kPrefix = 9;
  if (tres == "gres/gpu") return one ? "GPU" : "GPUs";
  if (tres.rfind("gres/gpu:", 0) == 0) return tres.substr(kPrefix) + (one ? " GPU" : " GPUs");
  if (tres == "cpu") return one ? "CPU" : "CPUs";
  if (tres == "mem") return "MB of memory";
  return one ? tres : tres + "s";
}

std::string counted(int64_t count, const std::string& tres) {
  return fmt::format("{} {}", count, unit_of(tres, count == 1));
}

int clamped(int64_t count) {
  return static_cast<int>(std::clamp<int64_t>(count, 0, std::numeric_limits<int>::max()));
}

JobLimit limit_on_count(const std::string& object, const TresLimit& limit, bool waits) {
  const int64_t used = waits || limit.of == Of::job ? 0 : limit.used;
  JobLimit out{limit.tres, clamped(limit.most - used), clamped(limit.most), ""};
  const char* per = limit.of == Of::job ? "per job" : limit.of == Of::user ? "per user" : "in all";
  out.reason = fmt::format("{} allows {} {}", object, counted(limit.most, limit.tres), per);
  const bool jobs = limit.tres == "job";
  if (used > 0)
    out.reason += fmt::format(", {} {} {}", used, used == 1 ? "is" : "are", jobs ? "running" : "in use");
  if (used > 0 && !jobs) out.reason += fmt::format(": at most {}", out.most);
  return out;
}

// Minutes times GPUs. Nothing for jobs without a time limit: Slurm ends them when the minutes are spent.
std::optional<JobLimit> limit_on_minutes(const std::string& object, const TresLimit& limit,
                                         std::optional<double> time_s) {
  if (!time_s || *time_s <= 0) return std::nullopt;
  const double minutes = *time_s / 60;
  const int64_t left = std::max<int64_t>(0, limit.most - (limit.of == Of::job_minutes ? 0 : limit.used));
  const int most = clamped(static_cast<int64_t>(static_cast<double>(left) / minutes));
  JobLimit out{limit.tres, most, most, ""};
  const std::string unit = unit_of(limit.tres, true);
  out.reason = limit.of == Of::job_minutes
                   ? fmt::format("{} allows {} {} minutes per job", object, limit.most, unit)
                   : fmt::format("{} has {} of {} {} minutes left", object, left, limit.most, unit);
  out.reason += fmt::format(": at most {} for {:.0f} minutes", counted(out.most, limit.tres), minutes);
  return out;
}

bool is_counted(const std::string& tres) {
  return tres == "gres/gpu" || tres.rfind("gres/gpu:", 0) == 0 || tres == "node" || tres == "job" ||
         tres == "cpu" || tres == "mem";
}

// How long the job may run there: nothing = without end.
std::optional<double> length_s(const SlurmPartition& partition, const PartitionWishes& wishes,
                               std::optional<double> wall_s) {
  if (wishes.time_limit_s) return wishes.time_limit_s;
  std::optional<double> time_s = partition.default_time_s ? partition.default_time_s : partition.max_time_s;
  if (wall_s && (!time_s || *wall_s < *time_s)) time_s = wall_s;
  return time_s;
}

}  // namespace

PartitionWishes with_defaults(PartitionWishes wishes, const Accounting& accounting) {
  const AssociationRecord* association = association_of(accounting, wishes.account, "");
  if (association == nullptr) return wishes;
  wishes.account = association->account;
  if (wishes.qos.empty()) wishes.qos = association->default_qos;
  return wishes;
}

JobLimits limits_in(const SlurmPartition& partition, const PartitionWishes& wishes,
                    const Accounting& accounting, bool waits) {
  const AssociationRecord* association = association_of(accounting, wishes.account, partition.name);
  const QosRecord* qos = find_qos(accounting, wishes.qos);
  const std::vector<Limited> order =
      in_order(find_qos(accounting, partition.qos), qos, association, accounting);
  JobLimits out;
  if (qos != nullptr) {
    out.ignores_time_limit = qos->ignores_time_limit;
    out.ignores_node_limit = qos->ignores_node_limit;
  }
  std::optional<double> wall_s;
  for (const Limited& object : order) {
    if (object.is_parent || wall_s || !object.limits->max_wall_s) continue;
    wall_s = object.limits->max_wall_s;
    if (wishes.time_limit_s && *wishes.time_limit_s > *wall_s)
      out.obstacle = fmt::format("{} allows jobs of {:.0f} minutes at most", object.name, *wall_s / 60);
  }
  const std::optional<double> time_s = length_s(partition, wishes, wall_s);
  std::set<std::pair<Of, std::string>> limited;  // by an object that precedes
  for (const Limited& object : order) {
    const bool is_qos = object.name.rfind("QOS ", 0) == 0;
    for (const TresLimit& limit : object.limits->tres) {
      const bool of_group = limit.of == Of::group || limit.of == Of::group_minutes;
      if (!is_counted(limit.tres) || limited.contains({limit.of, limit.tres})) continue;
      if (object.is_parent && !of_group) continue;
      if (is_qos || !of_group) limited.insert({limit.of, limit.tres});
      if (limit.of != Of::job_minutes && limit.of != Of::group_minutes)
        out.on_tres.push_back(limit_on_count(object.name, limit, waits));
      else if (std::optional<JobLimit> of_minutes = limit_on_minutes(object.name, limit, time_s))
        out.on_tres.push_back(std::move(*of_minutes));
    }
  }
  return out;
}

void forget_use(Accounting& accounting, const std::map<std::string, JobShare>& shares) {
  std::map<std::string, int64_t> held;
  for (const auto& [node, share] : shares) {
    ++held["node"];
    held["cpu"] += share.cpus;
    held["mem"] += share.memory_mb;
    for (const Gres& gres : parse_gres(share.gres)) {
      held["gres/" + gres.name] += gres.count;
      if (!gres.type.empty()) held["gres/" + gres.name + ":" + gres.type] += gres.count;
    }
  }
  const auto forget = [&](AccountLimits& limits) {
    for (TresLimit& limit : limits.tres)
      if (limit.of == Of::user || limit.of == Of::group)
        limit.used = std::max<int64_t>(0, limit.used - held[limit.tres]);
  };
  for (QosRecord& qos : accounting.qos) forget(qos.limits);
  for (AssociationRecord& association : accounting.associations) forget(association.limits);
}

}  // namespace sailor
