// Slurm's billing weights (TRESBillingWeights of a partition): the billing units that a job is charged for
// nodes that it takes whole. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace sailor {

// What a job that takes a whole node is allocated there.
struct BilledNode {
  int cpus = 0;
  int64_t memory_mb = 0;
  std::map<std::string, int> gres;  // by name as in weights: `gpu`, `gpu:a100`
};

// Units per hour of one node. `weights` as in slurm.conf, `CPU=1.0,Mem=0.25G,GRES/gpu:a100=2.0`; without
// weights Slurm counts CPUs. `most`: the largest weighted resource counts, not their sum
// (PriorityFlags=MAX_TRES). Resources that a node does not have count nothing.
double billing_units(const std::string& weights, const BilledNode& node, bool most);

}  // namespace sailor
