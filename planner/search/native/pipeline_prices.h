// Lower bounds on the price of a pipeline if GPUs have prices: the least price of GPU groups that hold all
// layers and complete m microbatches by a time T. Groups hold whole layers, and have room for the
// microbatches in flight.
//
// A group of a classic pipeline that takes t for a microbatch, f of it forward, ends no earlier than
//
//     before + m t                    the first microbatch comes through the groups before, the last gradient
//                                     goes back through them; with several pipelines the first layer's
//                                     gradient sums and its optimizer come after that
//     before + (m - 1) t + f + sums   its sums come after its last backward began; then its optimizer
//     forward of all + sums of node   replicas that share its cards may begin earlier
//
// where the groups before are the fastest. A dynamic program over the layers, from the last one, and the
// number of groups finds the least price; h microbatches are in flight on a group with h - 1 groups behind
// it.
//
// Two effects are bounded on average: that the groups before are not the fastest, and messages (Lagrangian
// bounds: the violation of a limit, times a weight, is added to prices; any weights give a bound). With F the
// time of a microbatch through all P groups and back, of total price W, and w the price of one group:
//
//     waits   F + (m - 1) t - (min(h, m) - 1) f <= T    when its first backward has ended, a group has done h
//                                     forwards at most. Times w / T, over all groups; W is that of the
//                                     cheapest pipeline without limits on averages, or more.
//     trips   (1 + q) (F + messages) + r t1 <= T        for m - 1 = q P + r: no more than P microbatches are
//                                     under way; before the last q trips the first group computes r of them.
//                                     (Only r b1 where q is 0.) Messages to other nodes are those of runs of
//                                     groups, one run on each node at least: group_ways.h. Those of pipelines
//                                     with fewer microbatches than `typical` are not asked to keep it, and
//                                     their runs are taken off the others'.
//
// With split backwards only the first part of a backward is on a microbatch's way back, and a group may
// compute the second parts while others do that. So in the first two lines `before` is the forward of the
// groups before, whose own sums need not follow (those of any layer do); in the third line, and in the
// others, F is what is on the way back, and for `waits` the forward alone.
//
// Of P interleaved groups the one with q behind it waits for a layer of each before it, and its sums come
// after all but P of its backwards. Of the layers of its last chunk min(2 q + 1, P) microbatches are in
// flight, of those of others P. P divides m. On average a group waits for a block of those before it at their
// own speed. So it holds no more than some number n of blocks, by way, and the price is
// at least y blocks + sum over groups of the least of (price - y n), for every y >= 0.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/search/native/group_ways.h"

namespace sailor::native {

// Weights of limits that groups only meet on average, in addition to those that each meets by itself.
struct LimitWeights {
  double waits = 0;  // as a fraction of a group's price
  double trips = 0;  // in the mean price of a GPU, for pipelines with `typical` microbatches or more
  int typical = 1;

  bool any() const { return waits > 0 || trips > 0; }
  bool operator==(const LimitWeights&) const = default;
};

class PipelinePrices {
 public:
  // Keeps a reference. `pipelines`: minimum number.
  PipelinePrices(const GroupWays& ways, int pipelines)
      : ways_(ways), several_(pipelines > 1), mean_gpus_(ways.gpus() / pipelines) {}

  // With a price for a GPU of each supply; infinite if there is no such pipeline. Increases with the number
  // of microbatches.
  double least(double s, int microbatches, bool interleave, const std::vector<double>& prices,
               const LimitWeights& weights);
  // GPUs of the last requested pipeline, by supply.
  const std::vector<double>& gpus() const { return gpus_; }
  // Effort of all queries.
  int64_t steps() const { return steps_; }

 private:
  struct SlotWay {
    double price = 0, blocks = 0;
    int way = -1;
  };
  // Equivalent places in a pipeline.
  struct Slot {
    int count = 1;
    std::vector<SlotWay> ways;
  };
  struct Choice {
    int way = -1, end = 0, behind = 0;
  };

  // `least_price`: of a pipeline without average limits.
  double classic(const std::vector<double>& prices, double least_price);
  // The layers from `layer` on, in this number of groups.
  size_t place(int layer, int groups) const {
    return static_cast<size_t>(layer) * static_cast<size_t>(most_ + 1) + static_cast<size_t>(groups);
  }
  bool in_time(const GroupWay& way, int first, int end) const;
  bool has_room(int way, int first, int end, int flight) const;
  // Addition of the limits to a group's price; `others`: what waits for it, price x seconds.
  double waiting(const LayerNeeds& needs, double price, double others) const;
  double trip(const GroupWay& way, const LayerNeeds& needs, bool first, bool last) const;
  // Addition to the price of a pipeline that begins with such a group.
  double all_trips(const LayerNeeds& first, int most_groups, bool exactly) const;
  // May a group need this much if others take as long before it?
  bool in_time(const LayerNeeds& of, const LayerNeeds& before, double late) const;

  double interleaved(const std::vector<double>& prices);
  void find_slots(int least, int most, const std::vector<double>& prices);
  Slot slot_of(int count, int flight, bool first, int behind, int before, int most,
               const std::vector<double>& prices) const;
  double fill_slots(double enough, double& worth);

  const GroupWays& ways_;
  const bool several_;
  const double mean_gpus_;  // upper bound for a pipeline
  double s_ = 0;
  LimitWeights weights_;
  int m_ = 0;
  bool split_ = false;         // may backwards be split?
  double trip_price_ = 0;      // per second of a microbatch's way there and back
  int most_ = 0;               // number of groups that are distinguished
  std::vector<double> price_;  // of the layers from each one on, by number of groups
  std::vector<Choice> choice_;
  std::vector<int> flights_;  // classes of microbatches in flight, by groups behind
  std::vector<Slot> slots_;
  std::vector<double> gpus_, used_;
  int64_t steps_ = 0;
};

}  // namespace sailor::native
