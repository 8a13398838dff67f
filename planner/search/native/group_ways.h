// Ways to use a group of GPUs for some layers of the model: a GPU type, a TP degree, with or without
// recomputation; and what a group needs of each for layers, at least. Lower bounds are made of it.
//
// Layers are of three kinds: the first, the last, and the blocks between them, which all count as the least
// of them. Tables of memory are filled on demand: not thread-safe.
#pragma once

#include <array>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "planner/search/native/space.h"
#include "planner/simulator/iteration_model.h"

namespace sailor::native {

// Seconds per byte of messages of any size, latency left out, at least; 0 where no link is known.
double least_s_per_byte(const LinkCurve* link, double senders);

// The best within some zones, by option of the space: seconds per byte from a GPU to one of the same node, to
// one of another node, and over the cards of a node whose GPUs all send; the latency between nodes; and the
// price of a group.
struct ZoneRates {
  ZoneRates(const Space& space, const std::set<std::string>& zones);

  std::vector<double> near_s, far_s, card_s, latency_s, charge_per_s;
};

// GPUs of one type in all zones.
struct GpuSupply {
  double gpus = 0, nodes = 0;
  int node_gpus = 0;  // free on the largest node
  int least_tp = std::numeric_limits<int>::max(), most_tp = 1;
  double card_s = kNever, latency_s = kNever;  // by byte over a node's cards, by message; at least
};

enum LayerKind { kFirst, kBlock, kLast };
inline constexpr LayerKind kLayerKinds[] = {kFirst, kBlock, kLast};

// What layers take: of a microbatch, and of an iteration.
struct LayerNeeds {
  double forward_s = 0, backward_s = 0;
  double sums_s = 0;  // of gradients, of what a replica sends itself
  double near_sums_s =
      0;               // with what the replicas on its node send over the same cards, some of them earlier
  double after_s = 0;  // of the optimizer and of handing out weights

  double both_s() const { return forward_s + backward_s; }
  void add(const LayerNeeds& of, double times) {
    forward_s += times * of.forward_s;
    backward_s += times * of.backward_s;
    sums_s += times * of.sums_s;
    near_sums_s += times * of.near_sums_s;
    after_s += times * of.after_s;
  }
};

struct GroupWay {
  int supply = 0;
  int option = 0;
  int tp = 1;
  Recompute recompute = Recompute::none;
  double near_s = 0, far_s = 0, card_s = 0;  // per byte of gradients of a replica
  int near_replicas = 1;                     // of a stage on a node, at most, of any TP degree
  std::array<LayerNeeds, 3> needs;           // by kind of layer; infinite where there is no room for one
  double model_s = 0;                        // a microbatch through all layers
  // Messages of a microbatch there and back, on the node; the group's part, by its GPUs, of what those to
  // other nodes take longer; and what that is too much, at most, at an end of the pipeline.
  double near_trip_s = 0, far_trip_s = 0, end_trip_s = 0;

  // Seconds per byte that the sums of so many replicas take where they stand best; what one of them sends
  // alone, or all those of a node.
  double sum_s_per_byte(int replicas, bool alone) const;
};

class GroupWays {
 public:
  struct Question {
    int microbatch = 1;
    int replicas = 1;       // of which there are ...
    int most_replicas = 1;  // ... up to so many
    bool zero1 = false;
    bool recompute = false;       // is it offered?
    std::set<std::string> zones;  // whose GPUs may be used
  };
  // Keeps references.
  GroupWays(const Space& space, IterationModel& model, const ZoneRates& rates, const Question& question);

  // Is there a way for every layer?
  bool usable() const { return path_s < kNever; }
  int blocks() const { return space_.layers() - 2; }
  double gpus() const;
  // Layers that a group has room for, with so many microbatches in flight: from the first on, blocks, and to
  // the last (with one in flight).
  struct Room {
    int head = -1, middle = 0, tail = 0;
  };
  const Room& room(int way, int in_flight) const;
  // Numbers of microbatches in flight are rounded down to one of a few.
  static int in_flight_class(int in_flight);
  // Blocks that a group has room for, neighbours or not.
  int most_blocks(int way, int in_flight) const;
  // A price for a GPU of each supply, by what it computes; 1 for all of them together.
  std::vector<double> prices_by_speed() const;

  std::vector<GpuSupply> supplies;
  std::vector<GroupWay> ways;              // into which some layer fits
  std::array<double, 3> gradient_bytes{};  // by kind of layer, of a replica, at least
  std::array<LayerNeeds, 3> fastest;       // by kind of layer, in any way
  double path_s = kNever;                  // a microbatch through the fastest groups
  double forward_s = kNever;               // of that the forward: no sums begin before
  double overhead_s = kNever;              // of an iteration, at least
  double charge = 0;                       // of a microbatch, at least
  double first_sum_s = 0;                  // of the first layer's sums
  bool mesh = false;                       // are gradients summed over one?
  double message_bytes = 0;                // between stages, at least
  double phases = 2;                       // of the sums
  double gathered = 0;                     // bytes of weights handed out for one of gradients

 private:
  bool fits(const GroupWay& way, int first, int end, int in_flight) const;
  void add_pool(const SpacePool& pool, int supply);
  void find_needs(const ZoneRates& rates);
  void find_messages(const ZoneRates& rates);

  const Space& space_;
  IterationModel& model_;
  const Question question_;
  mutable std::vector<std::vector<Room>> rooms_;  // by way, then in flight (classes of numbers)
};

}  // namespace sailor::native
