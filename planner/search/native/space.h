// The resources of the native search: nodes of a type in a zone (a pool) in the order in which they are
// filled, the same of all zones together if there are several, the shapes of replicas that are profiled on
// them (options), and counters of other limits. Immutable except for tables of kinds that are filled on
// demand: not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "planner/search/problem/goal.h"
#include "planner/search/problem/resources.h"
#include "planner/simulator/stage_kinds.h"

namespace sailor::native {

// More concurrent senders than any node has GPUs: only the rate of the node's network card matters.
inline constexpr double kManySenders = 1e6;

// Whether the ranks of TP groups split tokens (sequence parallelism): one choice for all stages of a plan.
enum class TokenSplit { none, all };

struct SpacePool {
  std::vector<int> nodes;  // of all nodes, in the order in which they are filled
  std::vector<int> free;   // GPUs by node
  int gpus = 0;            // within the limits on the pool
  std::vector<int> options;
  // All zones of a type together: replicas of a stage may be in any of them.
  bool joint = false;
  int zone_gpus = 0;  // in the zone with the most of them
  // Replicas of that many GPUs that it has room for.
  int room_for(int replica_gpus) const;
  int node_gpus() const { return free.empty() ? 0 : free.front(); }
};

struct SpaceOption {
  int pool = 0;
  ReplicaShape shape;
  int kind = 0;          // in kinds; of a joint pool: that in its first zone
  int in_resources = 0;  // in Resources::options; unused for a joint pool
};

// Instead of a size, of plans whose pipelines have microbatches of any sizes up to one: a sequence, whose
// times are those of a microbatch divided by its size, the least of all sizes.
constexpr int any_microbatch(int most) {
  return -most;
}
constexpr bool is_any(int microbatch) {
  return microbatch < 0;
}

class Space {
 public:
  // Keeps references to both.
  Space(const PlanningContext& context, const Resources& resources, TokenSplit split = TokenSplit::none,
        bool split_backward = false, bool may_offload = false);

  const PlanningContext& context;
  const Resources& resources;
  const TokenSplit split;
  const bool split_backward;     // may stages split their backward?
  const bool may_offload;        // may they offload, where the rate to the host is known?
  const Expense charged;         // the expense of charges
  std::vector<SpacePool> pools;  // those of single zones first
  std::vector<SpaceOption> options;
  std::vector<const SnapshotNode*> nodes;
  std::vector<int> pool_of_node;                                      // in one zone
  std::shared_ptr<const std::vector<std::optional<NodeBill>>> bills;  // by node
  mutable StageKinds kinds;
  std::vector<int> microbatches;  // sizes for which any option has times, ascending
  int most_copies = 1;            // of the weights in a replica of any option (context parallelism)
  // GPUs that share the gradients of a layer of that many pipelines, at most.
  int most_sharers(int pipelines) const {
    return most_copies == 1 ? pipelines : std::min(pipelines * most_copies, std::max(pipelines, gpus_));
  }

  // A size, or those that it may be.
  std::span<const int> sizes_of(int microbatch) const {
    const auto end = std::ranges::upper_bound(microbatches, std::abs(microbatch));
    const auto begin =
        is_any(microbatch) ? microbatches.begin() : std::ranges::find(microbatches, microbatch);
    return {begin, std::max(begin, end)};
  }

  int layers() const { return context.job.model.num_all_layers(); }
  // That a plan can use.
  int gpus() const;
  // The option of a pool with that shape; -1 if there is none.
  int option_of(int pool, ReplicaShape shape) const;
  bool has_times(int option, int microbatch) const {
    const int kind = options[static_cast<size_t>(option)].kind;
    if (!is_any(microbatch)) return kinds.has_times(kind, microbatch);
    return std::ranges::any_of(sizes_of(microbatch), [&](int size) { return kinds.has_times(kind, size); });
  }
  const KindTimes& times(int option, int microbatch) const {
    if (is_any(microbatch)) return least_times(option, microbatch);
    return kinds.times(options[static_cast<size_t>(option)].kind, microbatch);
  }
  // Is a link between the two over the network known?
  bool linked(int option_a, int option_b) const {
    return linked_[static_cast<size_t>(option_a) * options.size() + static_cast<size_t>(option_b)];
  }
  bool can_recompute(int option, Recompute recompute) const;
  bool can_offload(int option) const {
    return may_offload && kinds[options[static_cast<size_t>(option)].kind].offload_s > 0;
  }
  // What needs least memory of the GPUs of an option.
  Offload most_offload(int option) const { return can_offload(option) ? Offload::optimizer : Offload::none; }
  // Of recomputation, in ascending order.
  std::span<const Recompute> levels(int option) const { return trained_levels(can_offload(option)); }
  // What a further stage adds to a pipeline's time, as part of a microbatch's time on it: all of it, or,
  // where backwards may be split, without the weights' gradients and as much again, which fill the wait.
  double ramp_part(int option, int microbatch) const;

 private:
  const KindTimes& least_times(int option, int microbatch) const;
  int64_t most_groups() const;
  void join_zones();
  void find_links();

  mutable std::map<std::pair<int, int>, KindTimes> least_times_;  // by option and any_microbatch()
  std::vector<bool> linked_;                                      // [option][option]
  int gpus_ = 0;                                                  // gpus()
};

}  // namespace sailor::native
