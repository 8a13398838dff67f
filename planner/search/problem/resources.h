// The resources of a search: GPUs of a type in a zone (a pool), and the ways to use them (an option: type,
// zone, shape of a replica), with exact limits. Equal nodes collapse to counts. Immutable once built;
// independent of the order of nodes in the snapshot.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "planner/search/problem/plan_options.h"
#include "planner/simulator/cost.h"

namespace sailor {

// All free GPUs of one type in one zone.
struct Pool {
  std::string gpu_type;
  std::string zone;
  std::string region;
  std::vector<int> free_by_node;  // descending

  int gpus() const;
  // GPUs that replicas of that many can cover: none crosses a node.
  int gpus_in_groups_of(int gpus) const;
};

struct Option {
  int pool = 0;
  ReplicaShape shape;
  std::string gpu_type;
  std::string zone;
  std::string region;
  GpuRate rate;  // of the expense that the search tracks; all GPUs of a replica
  int64_t capacity_bytes = 0;
  int supply = 0;  // of Resources::supplies
};

// All GPUs of one type in one region.
struct Supply {
  std::string region;
  std::vector<int> options;
  int gpus = 0;  // that the job may use
};

// Do they only differ in their zone?
inline bool alike_but_for_zone(const Option& a, const Option& b) {
  return a.gpu_type == b.gpu_type && a.shape == b.shape;
}

// Resource use is a vector of counters, each with a capacity. A pool has one counter for all its GPUs, and
// one more per size of replica that cannot cover all of them: GPUs in replicas of at least that size. For
// sizes that divide one another (1, 2, 4, 8) these limits are exact; for others they are necessary, and
// place() decides. A type that is limited over several zones has its own counter, and so have all types
// together.
struct Resources {
  std::vector<Pool> pools;            // by zone, then type
  std::vector<Option> options;        // by pool, then shape
  std::vector<int> capacity;          // by counter
  std::vector<std::vector<int>> use;  // [option][counter]: use of one replica
  std::vector<Supply> supplies;       // by region, then type
  Snapshot usable;                    // the nodes that the job may use, by name

  int gpus() const;               // of all pools, ignoring limits
  int free_gpus(int pool) const;  // that the job may use: within the limit on the pool; 0 without options
  // With `left` by counter: takes the GPUs of `replicas` replicas (negative: returns them); the number of
  // replicas that fit, at most `most`.
  // replicas that there is room for, at most `most`.
  void take(int option, int64_t replicas, std::vector<int64_t>& left) const;
  int room(int option, const std::vector<int64_t>& left, int most) const;
};

// `context_parallel`: with options whose replicas split the tokens of a microbatch, too. Throws InputError
// when the job names a GPU type, zone or partition that the snapshot does not have.
Resources usable_resources(const PlanningContext& context, const PlanOptions& options,
                           std::map<std::string, int64_t>& rejected, bool context_parallel = false);

}  // namespace sailor
