// Lower bounds that take a few operations: from the computation of all GPUs together, and from traffic
// between zones or nodes. For plans of one microbatch size and number of pipelines.
#pragma once

#include <array>
#include <map>
#include <set>
#include <string>

#include "planner/search/native/group_ways.h"

namespace sailor::native {

// The minimum need of all GPU groups in any pipelines: every layer where it needs least, if a GPU has the
// price of its speed.
class AreaBound {
 public:
  AreaBound(const Space& space, IterationModel& model, const ZoneRates& rates,
            const GroupWays::Question& question);

  const GroupWays& ways() const { return ways_; }
  // Is there memory for that number of model replicas?
  bool holds(int pipelines) const;
  double iteration_s(double microbatches, int pipelines) const;
  // Time of a microbatch through a layer, or through all, if all GPUs share the work.
  double computing_s(LayerKind kind) const { return layer_s_[kind]; }
  double computing_s() const { return computing_s_; }

 private:
  const GroupWays ways_;
  std::array<double, 3> layer_s_{};
  // Per model and microbatch, per model and iteration; if all GPUs share the work.
  double computing_s_ = 0, after_s_ = 0;
  double longest_layer_s_ = 0;
  double models_ = 0;  // number of model replicas that fit into memory
};

// Plans in some zones, and in all of them.
struct ZoneCase {
  ZoneCase(const Space& space, std::set<std::string> of) : zones(std::move(of)), rates(space, zones) {}

  std::set<std::string> zones;
  ZoneRates rates;
};

// Minimum time of using several zones: messages between them, or gradient reduction.
class Crossing {
 public:
  explicit Crossing(const Space& space);
  // For `pipelines` pipelines of which the busiest has `microbatches`.
  double least_s(const GroupWays& ways, int microbatch, int pipelines, double microbatches, bool interleave);

 private:
  template <typename Visit>
  void for_each_link(const Visit& visit);
  double least_message_s(int microbatch);

  const Space& space_;
  double s_per_byte_ = kNever, card_s_per_byte_ = kNever, most_nodes_ = 1;
  std::map<int, double> message_s_;
};

// Minimum time of using one node, or several. Of several nodes, two may hold whole layers with all their
// replicas: then every microbatch crosses from one to the other, over the cards of one of them. Or at most
// one node does, which computes these layers, and the gradients of all others are reduced over the nodes'
// cards.
class NodeCrossing {
 public:
  explicit NodeCrossing(const Space& space);
  // For `pipelines` pipelines with `microbatches` in total.
  double least_s(const GroupWays& ways, int microbatch, int pipelines, double microbatches,
                 bool interleave) const;

  // For plans on one node; without overhead.
  static double one_node_s(const GroupWays& ways, int pipelines, double microbatches);

 private:
  static double sums_s(const GroupWays& ways, int pipelines, double microbatches);

  double message_bytes_ = kNever;  // of a sequence, over any boundary; without slowdown
};

}  // namespace sailor::native
