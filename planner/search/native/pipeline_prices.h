// What a pipeline costs at least when GPUs have prices: the least price of groups of GPUs that hold all
// layers and end m microbatches by a time T. Groups hold whole layers, and have room for the microbatches in
// flight.
//
// A group of a classic pipeline that takes t for a microbatch, f of it forward, ends no earlier than
//
//     before + m t                    the first microbatch comes through the groups before, the last gradient
//                                     goes back through them; with several pipelines the first layer's
//                                     gradient sums and its optimizer come after that
//     before + (m - 1) t + f + sums   its sums come after its last backward began; then its optimizer
//
// where the groups before are the fastest. A dynamic program over the layers, from the last one, finds the
// least price; as many microbatches are in flight as groups are needed behind, at least, and one.
//
// Of P interleaved groups the one with q behind it waits for a layer of each before it, and its sums come
// after all but P of its backwards. Of the layers of its last chunk min(2 q + 1, P) microbatches are in
// flight, of those of others P. So it holds no more than some number n of blocks, by way, and the price is
// at least y blocks + sum over groups of the least of (price - y n), for every y >= 0.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/search/native/group_ways.h"

namespace sailor::native {

class PipelinePrices {
 public:
  // Keeps a reference. `several`: pipelines.
  PipelinePrices(const GroupWays& ways, bool several) : ways_(ways), several_(several) {}

  // With a price for a GPU of each supply; infinite when there is no such pipeline. Grows with the number of
  // microbatches.
  double least(double s, int microbatches, bool interleave, const std::vector<double>& prices);
  // Of the last pipeline that was asked for, by supply.
  const std::vector<double>& gpus() const { return gpus_; }
  // What all answers took.
  int64_t steps() const { return steps_; }

 private:
  struct SlotWay {
    double price = 0, blocks = 0;
    int way = -1;
  };
  // Places in a pipeline that are alike.
  struct Slot {
    int count = 1;
    std::vector<SlotWay> ways;
  };
  struct Choice {
    int way = -1, end = 0;
  };

  double classic(const std::vector<double>& prices);
  bool in_time(const GroupWay& way, int first, int end) const;
  // May a group need so much when others take as long before it?
  bool in_time(const LayerNeeds& of, const LayerNeeds& before, double late) const;

  double interleaved(const std::vector<double>& prices);
  void find_slots(int least, int most, const std::vector<double>& prices);
  Slot slot_of(int count, int in_flight, bool first, bool last, int before, int most,
               const std::vector<double>& prices) const;
  double fill_slots(double enough, double& worth);

  const GroupWays& ways_;
  const bool several_;
  double s_ = 0;
  int m_ = 0;
  std::vector<double> price_;  // of the layers from each on
  std::vector<int> groups_;    // that they need, at least
  std::vector<Choice> choice_;
  std::vector<Slot> slots_;
  std::vector<double> gpus_, used_;
  int64_t steps_ = 0;
};

}  // namespace sailor::native
