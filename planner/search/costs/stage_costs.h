// Tables of the search under the published cost model for one microbatch size: time, memory and links of any
// run of layers on any option in O(1). Immutable.
#pragma once

#include <utility>
#include <vector>

#include "planner/search/problem/resources.h"

namespace sailor {

// Relative; times with a smaller difference count as equal.
constexpr double kSameTime = 1e-12;

class StageCosts {
 public:
  StageCosts(const PlanningContext& context, const Resources& resources, int microbatch);

  int layers() const { return layers_; }
  int microbatch() const { return microbatch_; }
  // Options whose (microbatch, TP degree) cell was measured.
  const std::vector<int>& options() const { return options_; }

  // Forward and backward of one microbatch through layers [first, end).
  double compute_s(int option, int first, int end) const {
    return compute_[option][end] - compute_[option][first];
  }
  // The published formula counts the update of the first layer only.
  double update_s(int option, int first) const { return update_[option][first]; }
  // Does a rank with `in_flight` microbatches fit?
  bool fits(int option, int first, int end, int in_flight) const;

  // One microbatch's activation (gradient) crossing the boundary before `layer` from one option to another;
  // infinite if no network profile has the pair. `from` of a gradient holds `layer`.
  double activation_s(int from, int to, int layer) const { return message_s(from, to, layer - 1); }
  double gradient_s(int from, int to, int layer) const { return message_s(from, to, layer); }
  // Charge of one microbatch through layers [first, end) in addition to the time of the GPUs.
  double work_charge(int option, int first, int end) const {
    const GpuRate& rate = resources_.options[option].rate;
    return (rate.busy_per_s - rate.idle_per_s) * compute_s(option, first, end);
  }
  bool work_charged() const { return work_charged_; }
  // Both messages of one microbatch over that boundary.
  double message_charge(int upstream, int downstream, int layer) const;
  // Are messages over the boundary before layer `a` as large as before layer `b`, for all options?
  bool same_messages(int a, int b) const { return same_messages_[a] == same_messages_[b]; }

  // Gradient sync of layers [first, end) over the pair (a, b) of neighbouring replicas, when the smallest TP
  // weights are in `parts` parts.
  double sync_s(int a, int b, int parts, int first, int end, int replicas) const;
  double sync_charge(int a, int b, int first, int end, int replicas) const;
  // The link of that pair; pairs over one link take equally long.
  const LinkCurve* sync_link(int a, int b) const { return single_links_[a][b]; }
  // Stages with equal numbers of parameters form a class; classes are numbered by size.
  int size_class(int first, int end) const { return size_class_[first * (layers_ + 1) + end]; }
  // One stage [first, end) of each class.
  const std::vector<std::pair<int, int>>& size_class_stages() const { return size_class_stages_; }

  // Minimum over all options; for bounds. Charge: one microbatch, GPUs only.
  double least_compute_s(int first, int end) const { return least_[end] - least_[first]; }
  double least_charge(int first, int end) const { return least_charge_[end] - least_charge_[first]; }
  // The longest of the layers, each where it is fastest: a lower bound on the bottleneck.
  double longest_layer_s() const;
  // A lower bound on the gradient sync of the stage with the most gradients, if `gpus` GPUs hold all layers
  // of one pipeline.
  double least_sync_s(int replicas, double gpus) const;

 private:
  void add_option(int option, const LayerProfile::Cell& cell, const std::vector<LayerSizes>& sizes);
  void number_messages();
  void number_sizes();
  double message_bytes(int option, int layer) const;  // of one microbatch after `layer`
  double message_s(int from, int to, int layer) const;

  const PlanningContext& context_;
  const Resources& resources_;
  const Expense charged_;
  bool work_charged_ = false;
  const int microbatch_, layers_;
  std::vector<int> options_;
  std::vector<std::vector<double>> compute_;                    // [option][layer], prefix sums
  std::vector<std::vector<double>> update_;                     // [option][layer]
  std::vector<std::vector<int64_t>> parameters_, activations_;  // [option][layer], prefix sums
  std::vector<const std::vector<LayerSizes>*> sizes_;           // [option]
  std::vector<double> parameter_bytes_;                         // unsharded layers, prefix sums
  std::vector<double> least_, least_charge_;                    // prefix sums
  std::vector<int> same_messages_;                              // by layer: equal numbers mean equal messages
  std::vector<int> size_class_;                                 // [first][end]
  std::vector<std::pair<int, int>> size_class_stages_;          // by class
  std::vector<std::vector<const LinkCurve*>> links_;            // [from][to], the whole TP groups
  std::vector<std::vector<const LinkCurve*>> single_links_;     // [from][to], one GPU each
};

}  // namespace sailor
