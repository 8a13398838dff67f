// Ways to use a GPU group for some layers of the model: a GPU type, a TP degree, with or without
// recomputation; and lower bounds on the needs of a group in each. Lower bounds of plans are built from
// these.
//
// Layers are of three kinds: the first, the last, and the blocks between them, which all count as the
// smallest of them. Memory tables are filled on demand: not thread-safe.
#pragma once

#include <array>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "planner/search/native/space.h"
#include "planner/simulator/iteration_model.h"

namespace sailor::native {

// Lower bounds on the seconds per byte of messages, and of steps of collectives, of any size, without
// latency; infinite if no link is known.
double least_s_per_byte(const LinkCurve* link, double senders);
double least_step_s_per_byte(const LinkCurve* link, double senders);

// The best values within some zones, by option of the space: seconds per byte from a GPU to one on the same
// node, to one on another node, and over the cards of a node whose GPUs all send, for messages and for
// gradient reduction; the latency between nodes; and the price of a group.
struct ZoneRates {
  ZoneRates(const Space& space, const std::set<std::string>& zones);

  std::vector<double> near_s, far_s, card_s, latency_s, charge_per_s;
  std::vector<double> sum_near_s, sum_far_s, sum_card_s;
};

// GPUs of one type in all zones.
struct GpuSupply {
  double gpus = 0, nodes = 0;
  int node_gpus = 0;                                                // free on the largest node
  int least_gpus = std::numeric_limits<int>::max(), most_gpus = 1;  // of a replica
  // Per byte over a node's cards, of messages and of sums; per message; lower bounds.
  double card_s = kNever, sum_card_s = kNever, latency_s = kNever;
};

enum LayerKind { kFirst, kBlock, kLast };
inline constexpr LayerKind kLayerKinds[] = {kFirst, kBlock, kLast};

// Needs of layers: per microbatch, and per iteration.
struct LayerNeeds {
  double forward_s = 0, backward_s = 0;
  double weight_s = 0;  // of the backward: what one that is split may leave for later; at most
  double sums_s = 0;    // gradient reduction: data that a replica sends itself
  double near_sums_s =
      0;  // including data that the replicas on its node send over the same cards, some of them earlier
  double after_s = 0;  // optimizer and gathering of weights

  double both_s() const { return forward_s + backward_s; }
  // There and back.
  double trip_s() const { return both_s() - weight_s; }
  void add(const LayerNeeds& of, double times) {
    forward_s += times * of.forward_s;
    backward_s += times * of.backward_s;
    weight_s += times * of.weight_s;
    sums_s += times * of.sums_s;
    near_sums_s += times * of.near_sums_s;
    after_s += times * of.after_s;
  }
};

// What the blocks of a group compute again on average.
struct RecomputeRange {
  // All at one level; or their backwards take longer by `least_s` at least, and they keep at least what they
  // would with this part at `deep` and the others at `level`.
  bool uniform = true;
  Recompute level = Recompute::none, deep = Recompute::none;
  double deep_part = 0;
  double least_s = 0;

  StageRecompute of_blocks(int blocks) const;
};

struct GroupWay {
  int supply = 0;
  int option = 0;
  int gpus = 1;
  RecomputeRange recompute;
  double near_s = 0, far_s = 0, card_s = 0;  // per byte of gradients of a replica
  int near_replicas = 1;                     // maximum replicas of a stage on a node, for any size
  std::array<LayerNeeds, 3> needs;           // by kind of layer; infinite if none fits
  double model_s = 0;                        // a microbatch through all layers
  // Messages of a microbatch in both directions, on the node; the group's share, by its GPUs, of the
  // additional time of those to other nodes; and the maximum excess of that at an end of the pipeline.
  double near_trip_s = 0, far_trip_s = 0, end_trip_s = 0;

  // Seconds per byte of gradient reduction over this many replicas in the best placement: over a mesh, of one
  // replica alone, or of all those of a node; along a ring, which leaves every node once.
  // `grouped`: also in groups of them that each have a copy of the states (hybrid ZeRO).
  double mesh_s_per_byte(int replicas, bool alone, bool grouped) const;
  double ring_s_per_byte(int replicas, int most_near_replicas, bool grouped) const;
};

class GroupWays {
 public:
  struct Question {
    int microbatch = 1;           // or any_microbatch()
    int replicas = 1;             // minimum number of replicas
    int most_replicas = 1;        // maximum number of replicas
    Zero zero = Zero::none;       // or less, if that needs less memory
    bool recompute = false;       // may stages recompute?
    bool split_backward = false;  // may they split their backward?
    bool grouped = false;         // may groups of replicas each have a copy of what ZeRO shards?
    std::set<std::string> zones;  // zones of usable GPUs
  };
  // Keeps references.
  GroupWays(const Space& space, IterationModel& model, const ZoneRates& rates, const Question& question);

  // Is there a way for every layer?
  bool usable() const { return path_s < kNever; }
  int blocks() const { return space_.layers() - 2; }
  double gpus() const;
  // Number of layers that fit into a group with a class of microbatches in flight: from the first layer on,
  // blocks only, and up to the last layer (with one in flight).
  struct Room {
    int head = -1, middle = 0, tail = 0;
  };
  const Room& room(int way, int flight) const {
    const std::vector<Room>& of_way = rooms_[static_cast<size_t>(way)];
    const auto at = static_cast<size_t>(flight);
    return at < of_way.size() && of_way[at].head >= 0 ? of_way[at] : find_room(way, flight);
  }
  // The class of a number of microbatches in flight, which is rounded down to a few. One is class 0.
  static int in_flight_class(int in_flight);
  // Number of blocks that fit into a group, adjacent or not.
  int most_blocks(int way, int flight) const;
  // A price for a GPU of each supply, by its speed; 1 for all of them together.
  std::vector<double> prices_by_speed() const;

  std::vector<GpuSupply> supplies;
  std::vector<GroupWay> ways;              // that fit at least one layer
  std::array<double, 3> gradient_bytes{};  // by kind of layer, of a replica; lower bounds
  std::array<LayerNeeds, 3> fastest;       // by kind of layer, in any way
  double path_s = kNever;                  // a microbatch through the fastest groups
  double forward_s = kNever;               // forward part of path_s: no gradient reduction begins before
  double overhead_s = kNever;              // lower bound for an iteration
  double charge = 0;                       // lower bound for a microbatch
  // Of the first layer's sums; of those of the lowest layer of any group, which no backward hides.
  double first_sum_s = 0, last_sum_s = 0;
  bool grouped = false;      // may groups of replicas each have a copy of the states?
  bool mesh = false;         // are gradients reduced over a mesh?
  bool split = false;        // may backwards be split?
  double message_bytes = 0;  // between stages; lower bound
  double latency_part = 1;   // of a link's latency, in the time of a message
  double phases = 2;         // of gradient reduction
  double gathered = 0;       // gathered weight bytes per gradient byte

 private:
  bool fits(const GroupWay& way, int first, int end, int in_flight) const;
  const Room& find_room(int way, int flight) const;
  void add_pool(const SpacePool& pool, int supply);
  std::vector<RecomputeRange> recompute_ranges(int option) const;
  void find_sum_rates(const ZoneRates& rates);
  std::pair<double, double> sums_s_per_byte(const GroupWay& way) const;
  void find_needs(const ZoneRates& rates);
  void find_messages(const ZoneRates& rates);

  const Space& space_;
  IterationModel& model_;
  const Question question_;
  int most_near_replicas_ = 1;
  mutable std::vector<std::vector<Room>> rooms_;  // by way, then class of microbatches in flight
};

}  // namespace sailor::native
