// Ways to use a group of GPUs for some layers of the model: a GPU type, a TP degree, with or without
// recomputation. Lower bounds ask how much of the model a group does, holds and sends, in units that do not
// depend on which layers those are:
//
//     work of a layer = the least, over all ways, of its time by that of the way's block, forward or backward
//
// so that no way ever does more work per second than one unit per `unit_s`, forward and backward alike, and a
// model has `work` units.
// Immutable; made from the space's tables, which are filled on demand: not thread-safe.
#pragma once

#include <vector>

#include "planner/search/native/space.h"
#include "planner/simulator/iteration_model.h"

namespace sailor::native {

// The best of all zones, by option of the space: seconds per byte from a GPU to one of the same node, to one
// of another node, and over the cards of a node whose GPUs all send (nothing where gradients are summed in
// another way than over a mesh), and the price of a group.
struct ZoneRates {
  explicit ZoneRates(const Space& space);

  std::vector<double> near_s, far_s, card_s, usd_per_s;
};

// GPUs of one type in all zones.
struct GpuSupply {
  double gpus = 0;
  int node_gpus = 0;  // free on the largest node
};

struct GroupWay {
  int supply = 0;
  int option = 0;
  int tp = 1;
  Recompute recompute = Recompute::none;
  double unit_s = 0;          // of one microbatch, forward and backward
  double backward_share = 0;  // of that
  double most_work = 0;       // that fits into memory with one microbatch in flight
  double update_s = 0;        // of the optimizer and of handing out weights, per unit of work, at least
  // Gradients, in all phases of their sums: of a unit of work, at least, and of the first layer.
  double sum_bytes = 0, first_sum_bytes = 0;
  double near_s = 0, far_s = 0, card_s = 0;  // per byte of these
  int near_replicas = 1;                     // of a stage on a node, at most

  // Seconds per byte that the sums of so many replicas take where they stand best.
  double sum_s_per_byte(int replicas) const;
};

class GroupWays {
 public:
  struct Question {
    int microbatch = 1;
    int replicas = 1;       // of which there are ...
    int most_replicas = 1;  // ... up to so many
    bool zero1 = false;
    bool recompute = false;  // is it offered?
  };
  GroupWays(const Space& space, const ZoneRates& rates, const Question& question);

  std::vector<GpuSupply> supplies;
  std::vector<GroupWay> ways;  // into which some layer fits
  double work = 0;             // units of the model
  double longest_layer_s = 0;  // of one microbatch, where it is fastest
  double overhead_s = 0;       // of an iteration, at least
  double layer_update_s = 0;   // of the layer whose update and weights take longest, at least
  double usd = 0;              // of a microbatch, at least
};

}  // namespace sailor::native
