#include "spank_plugin/slurm/gpu_budget.h"

#include <algorithm>

#include "planner/spec/name_list.h"

namespace sailor {
namespace {

constexpr char kGpus[] = "gres/gpu";

// GRES type of a limit on GPUs; empty = all.
std::string type_of(const std::string& tres) {
  const size_t colon = tres.find(':');
  return colon == std::string::npos ? "" : tres.substr(colon + 1);
}

}  // namespace

GpuBudget::GpuBudget(const PartitionLimits& limits, bool whole_nodes, int cpus_of_rank,
                     const SiteConfig& site) {
  std::vector<Account> all;
  for (const auto& [partition, of_partition] : limits)
    for (const JobLimit& limit : of_partition) {
      const auto known = std::find_if(all.begin(), all.end(),
                                      [&](const Account& account) { return account.limit == limit; });
      if (known == all.end())
        all.push_back({limit, {partition}});
      else
        known->partitions.push_back(partition);
    }
  for (const Account& account : all) {
    const JobLimit& limit = account.limit;
    const bool everywhere = account.partitions.size() == limits.size();
    if (limit.tres.rfind(kGpus, 0) != 0) {
      if (!everywhere) continue;
      JobLimit& least = of_job_.emplace(limit.tres, limit).first->second;
      if (limit.most < least.most) least = limit;
      // Every rank has a processor.
      if (limit.tres == "cpu" && !whole_nodes)
        planner_limits_.push_back({limit.most / cpus_of_rank, "", limit.reason});
    } else if (everywhere && !whole_nodes) {
      const std::string type = type_of(limit.tres);
      const auto known = site.gres.find(type);
      planner_limits_.push_back({limit.most, known == site.gres.end() ? type : known->second, limit.reason});
    } else {
      accounts_.push_back(account);
    }
  }
}

bool GpuBudget::Account::counts(const std::string& partition, const std::string& type) const {
  return contains(partitions, partition) && (limit.tres == kGpus || type_of(limit.tres) == type);
}

std::optional<std::string> GpuBudget::obstacle(const std::string& partition,
                                               const std::vector<NodeGpus>& gpus, bool whole) const {
  for (const Account& account : accounts_) {
    int wanted = 0;
    for (const NodeGpus& of_type : gpus)
      if (account.counts(partition, of_type.type)) wanted += of_type.count;
    if (wanted > 0 && account.limit.most < (whole ? wanted : 1)) return account.limit.reason;
  }
  return std::nullopt;
}

int GpuBudget::within(const std::string& partition, const std::string& type, int gpus) const {
  for (const Account& account : accounts_)
    if (account.counts(partition, type)) gpus = std::min(gpus, account.limit.most);
  return gpus;
}

void GpuBudget::take(const std::string& partition, const std::string& type, int gpus) {
  for (Account& account : accounts_)
    if (account.counts(partition, type)) account.limit.most = std::max(0, account.limit.most - gpus);
}

}  // namespace sailor
