// Kinds of stages by number. A kind is a GPU type in a zone with the shape of a replica, whose ranks may
// split the tokens between tensor-parallel regions; tables have everything that the native cost model needs
// of it. A search that predicts many plans of one context keeps one StageKinds.
//
// Tables are filled on first use: not thread-safe, one object per thread. Keeps a reference to the context,
// which must outlive it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "planner/simulator/cost.h"
#include "planner/simulator/lookup.h"
#include "planner/simulator/prediction.h"

namespace sailor::native {

struct StageKind {
  std::string gpu_type, zone;
  ReplicaShape shape;
  bool splits_tokens = false;  // over the TP group (sequence parallelism); never at TP degree 1
  PerExpense<GpuRate> rate;    // of all GPUs of a replica, on the cheapest nodes
  int64_t capacity_bytes = 0;
  // Of an optimizer step with offloaded states, per parameter of the rank; 0: the rate is unknown.
  double offload_s = 0;
  // The part of a node's free memory for each of its free GPUs, on the node with least; 0 = unknown.
  int64_t host_bytes = 0;
  bool on_processors = false;
  const LayerProfile* profile = nullptr;
  const std::vector<LayerSizes>* sizes = nullptr;
  std::shared_ptr<const std::vector<LayerSizes>> own_sizes;  // that are not in a profile
  std::vector<int> alike;  // by layer: how many up to and including it have the same sizes

  int token_shares() const { return shape.cp * (splits_tokens ? shape.tp : 1); }
};

// One microbatch through layers [0, i) of a kind, as prefix sums; recomputation as its addition to a
// backward.
struct KindTimes {
  std::vector<double> forward_s, backward_s, update_s;
  std::vector<double> weight_s;  // of backward_s: what a split backward computes later
  std::array<std::vector<double>, kRecomputeLevels> again_s;  // by level; that of none is empty

  double again(Recompute recompute, int first, int end) const {
    if (recompute == Recompute::none) return 0;
    const std::vector<double>& sums = again_s[static_cast<size_t>(recompute)];
    return sums[end] - sums[first];
  }
  // Of the first layers of a stage, up to `end`.
  double extra_s(const StageRecompute& recompute, int first, int end) const {
    if (recompute.deep_blocks() == 0) return again(recompute.level(), first, end);
    const int deep_end = std::min(end, std::max(first, 1) + recompute.deep_blocks());
    return again(recompute.deep(), first, deep_end) + again(recompute.level(), deep_end, end);
  }
  double forward(int first, int end) const { return forward_s[end] - forward_s[first]; }
  double backward(const StageRecompute& recompute, int first, int end) const {
    return backward_s[end] - backward_s[first] + extra_s(recompute, first, end);
  }
  double weights(int first, int end) const { return weight_s[end] - weight_s[first]; }
};

class StageKinds {
 public:
  explicit StageKinds(const PlanningContext& context) : context_(context) {}
  StageKinds(const StageKinds&) = delete;
  StageKinds& operator=(const StageKinds&) = delete;

  // The number of a kind. Throws InputError when its type has no profile, or its shape no sizes.
  int number(const std::string& gpu_type, const std::string& zone, ReplicaShape shape,
             bool splits_tokens = false);
  const StageKind& operator[](int kind) const { return kinds_[static_cast<size_t>(kind)]; }
  int count() const { return static_cast<int>(kinds_.size()); }
  ReplicaShape shape(int kind) const { return shapes_[static_cast<size_t>(kind)]; }

  // Throws InputError when the (microbatch, shape) cell was not profiled.
  const KindTimes& times(int kind, int microbatch) {
    for (const auto& [size, times] : times_[static_cast<size_t>(kind)])
      if (size == microbatch) return *times;
    return work_out_times(kind, microbatch);
  }
  bool has_times(int kind, int microbatch) const {
    const StageKind& of = kinds_[static_cast<size_t>(kind)];
    return of.profile->find(microbatch, {.tp = of.shape.tp}) != nullptr;
  }
  // The link between two kinds, on one node or between nodes; nullptr if unknown.
  const LinkCurve* find_link(int from, int to, bool same_node);
  // The same; throws InputError.
  const LinkCurve& link(int from, int to, bool same_node);
  // An all-gather inside a TP group of what passes the boundary before `layer`.
  double message_gather_s(int kind, int layer, int microbatch);
  // A sum over a TP group of the gradients of a layer's parameters that all of its ranks have.
  double token_sum_s(int kind, int layer);
  // The expenses of a GB from the zone of one kind to that of the other.
  const PerExpense<double>& traffic_per_gb(int from, int to) const {
    return pairs_[static_cast<size_t>(from)][static_cast<size_t>(to)].traffic_per_gb;
  }
  bool pays_for_traffic() const { return pays_for_traffic_; }
  // Parameters of layers [first, end) on one GPU of the kind.
  double parameters(int kind, int first, int end) const {
    const std::vector<double>& sums = parameters_[static_cast<size_t>(kind)];
    return sums[end] - sums[first];
  }
  // An optimizer step of layers [first, end) on one GPU of the kind, whose times these are.
  double update_s(int kind, const KindTimes& times, int first, int end, Offload offload) const {
    const double update_s = times.update_s[end] - times.update_s[first];
    return offload == Offload::none
               ? update_s
               : std::max(update_s, kinds_[kind].offload_s * parameters(kind, first, end));
  }
  // What a rank of the kind with this memory needs of its node's (host_memory.h).
  int64_t host_bytes(int kind, const MemoryBreakdown& memory) const;
  // What it lacks of its GPU's memory; or, if it offloads, of its part of the node's, unless that is ignored.
  // Negative or 0 if both are sufficient.
  int64_t missing_bytes(int kind, const MemoryBreakdown& memory, bool ignores_host = false) const;
  // Throws InputError when it is not known how fast the kind's GPUs reach the memory of their node.
  void require_offload(int kind) const;
  const PlanningContext& context() const { return context_; }

 private:
  struct Pair {
    const LinkCurve* near = nullptr;
    const LinkCurve* far = nullptr;
    bool knows_near = false, knows_far = false;
    PerExpense<double> traffic_per_gb;
  };

  const KindTimes& work_out_times(int kind, int microbatch);

  const PlanningContext& context_;
  std::vector<StageKind> kinds_;
  std::vector<ReplicaShape> shapes_;  // by kind
  std::map<std::tuple<std::string, std::string, ReplicaShape, bool>, int> numbers_;
  // By kind: a few microbatch sizes. Callers keep references.
  std::vector<std::vector<std::pair<int, std::unique_ptr<const KindTimes>>>> times_;
  std::vector<std::vector<double>> parameters_;  // by kind: prefix sums
  std::vector<std::vector<Pair>> pairs_;         // [from][to]
  bool pays_for_traffic_ = false;
};

}  // namespace sailor::native
