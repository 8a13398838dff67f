// Everything the search needs to know of one microbatch size, as tables: time, memory and links of any run of
// layers on any option in O(1). Also what both cost models add up, so that the search itself does not know
// which one it serves. Immutable.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "planner/search/problem/resources.h"

namespace sailor {

// Relative; times that differ by less are the same.
constexpr double kSameTime = 1e-12;

class StageCosts {
 public:
  // recomputing: with the options that recompute, as far as memory binds without. sharded: replicas share
  // their optimizer states (ZeRO-1), so memory and updates depend on how many they are; not under the
  // published model, which does not know that.
  StageCosts(const PlanningContext& context, const Resources& resources, CostModel model, int microbatch,
             bool recomputing = false, bool sharded = false);

  int layers() const { return layers_; }
  int microbatch() const { return microbatch_; }
  CostModel model() const { return model_; }
  bool sharded() const { return sharded_; }
  // Options whose (microbatch, TP degree) cell was measured.
  const std::vector<int>& options() const { return options_; }
  // Is it one of them? Requires an option of the resources.
  bool offers(int option) const { return !compute_[option].empty(); }

  // Forward and backward of one microbatch through layers [first, end).
  double compute_s(int option, int first, int end) const {
    return compute_[option][end] - compute_[option][first];
  }
  double update_s(int option, int first, int end, int replicas) const {
    if (model_ == CostModel::published) return update_[option][first + 1] - update_[option][first];
    return (update_[option][end] - update_[option][first]) / (sharded_ ? replicas : 1);
  }
  // Does a rank fit that holds `in_flight` microbatches? Communication buffers and sums over replicas are
  // included.
  bool fits(int option, int first, int end, int in_flight, int replicas) const;
  int64_t memory_bytes(int option, int first, int end, int in_flight, int replicas) const;
  // So many replicas need as much memory (a little more than they do, where shards are tiny).
  int memory_replicas(int replicas) const;
  // Is there a stage, with as many microbatches in flight as its place in a pipeline may ask for, that does
  // not fit some option?
  bool memory_binds() const;

  // One microbatch's activation (gradient) crossing the boundary before `layer` from one option to another;
  // infinite when no network profile knows the pair.
  double activation_s(int from, int to, int layer) const;
  double gradient_s(int from, int to, int layer) const;  // `from` holds `layer`
  // Both messages of one microbatch over that boundary, USD.
  double message_usd(int upstream, int downstream, int layer) const;
  // Gradient sync of layers [first, end) over the pair (a, b) of neighbouring replicas, when the smallest TP
  // degree is `tp`.
  double sync_s(int a, int b, int tp, int first, int end, int replicas) const;
  double sync_usd(int a, int b, int first, int end, int replicas) const;
  // Stages with equally many parameters are of one class; classes are numbered by size.
  int size_class(int first, int end) const { return size_class_[first * (layers_ + 1) + end]; }
  // One stage [first, end) of each class.
  const std::vector<std::pair<int, int>>& size_class_stages() const { return size_class_stages_; }

  // Over which link a pair of replicas sums gradients; pairs over one link take equally long.
  const LinkCurve* sync_link(int a, int b) const {
    return model_ == CostModel::published ? single_links_[a][b] : links_[a][b];
  }
  // Are messages over the boundary before layer `a` as large as before layer `b`, whatever the options?
  bool same_messages(int a, int b) const { return same_messages_[a] == same_messages_[b]; }

  // Smallest over all options; for bounds.
  double least_compute_s(int first, int end) const { return least_[end] - least_[first]; }
  double least_usd(int first, int end) const {
    return least_usd_[end] - least_usd_[first];
  }  // one microbatch, GPUs only
  // Memory of the whole model, at least: states, and the activations of one microbatch.
  double least_memory_bytes() const { return least_memory_bytes_; }
  // Memory of one GPU that is left for them, at most.
  double most_free_bytes(int option) const;
  // Gradient sync of the stage that has most to sync, when `gpus` GPUs hold all layers of one pipeline, at
  // least.
  double least_sync_s(int replicas, double gpus) const;

 private:
  double native_message_s(const LinkCurve& link, double bytes, int from, int to) const;
  void number_messages();
  void number_sizes();

  double message_bytes(int option, int layer) const;  // of one microbatch before `layer`
  bool memory_binds(int option) const;

  const PlanningContext& context_;
  const Resources& resources_;
  CostModel model_;
  int microbatch_;
  bool sharded_;
  int layers_;
  std::vector<int> options_;
  std::vector<std::vector<double>> compute_, update_;  // [option][layer], prefix sums
  std::vector<std::vector<int64_t>> parameters_, activations_;
  std::vector<const std::vector<LayerSizes>*> sizes_;  // [option]
  std::vector<double> parameter_bytes_;                // whole layers, prefix sums
  std::vector<double> least_, least_usd_;              // prefix sums
  double least_memory_bytes_ = 0;
  std::vector<int> same_messages_;                           // by layer: equal numbers, equal messages
  std::vector<int> size_class_;                              // [first][end]
  std::vector<std::pair<int, int>> size_class_stages_;       // by class
  std::vector<const LinkCurve*> distinct_links_;             // for sums over replicas
  std::vector<std::vector<const LinkCurve*>> links_;         // [from][to], the whole TP groups
  std::vector<std::vector<const LinkCurve*>> single_links_;  // [from][to], one GPU each
};

}  // namespace sailor
