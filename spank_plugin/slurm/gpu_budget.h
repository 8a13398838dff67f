// The limits of QOS and associations on the GPUs and nodes of a job, over all partitions. Pure.
//
// A limit that holds in all usable partitions is left to the planner, where jobs take only what they ask for.
// Others are met by offering fewer nodes: the first ones are as good as any.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "planner/spec/site_config.h"
#include "planner/spec/snapshot.h"
#include "spank_plugin/slurm/account_limits.h"
#include "spank_plugin/slurm/node_use.h"

namespace sailor {

// By usable partition.
using PartitionLimits = std::map<std::string, std::vector<JobLimit>>;

class GpuBudget {
 public:
  GpuBudget() = default;
  // `whole_nodes`: jobs take whole nodes in one of the partitions. `cpus_of_rank`: at least.
  GpuBudget(const PartitionLimits& limits, bool whole_nodes, int cpus_of_rank, const SiteConfig& site);

  const std::vector<GpuLimit>& planner_limits() const { return planner_limits_; }
  // The least limits on nodes, processors, memory and components, of the whole job, by TRES.
  const std::map<std::string, JobLimit>& of_job() const { return of_job_; }

  // Why the job cannot have these GPUs of a node as well, or any of them if it shares the node.
  std::optional<std::string> obstacle(const std::string& partition, const std::vector<NodeGpus>& gpus,
                                      bool whole) const;
  // How many of `gpus` of this type there is room for.
  int within(const std::string& partition, const std::string& type, int gpus) const;
  void take(const std::string& partition, const std::string& type, int gpus);

 private:
  struct Account {
    JobLimit limit;  // what is left of it
    std::vector<std::string> partitions;
    bool counts(const std::string& partition, const std::string& type) const;
  };

  std::vector<GpuLimit> planner_limits_;
  std::map<std::string, JobLimit> of_job_;
  std::vector<Account> accounts_;
};

}  // namespace sailor
