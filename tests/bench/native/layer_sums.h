// Sums over runs of layers of a profile, for the rivals' estimates: one subtraction each.
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "planner/profile/layer_profile.h"
#include "planner/simulator/simulate.h"

namespace sailor::bench {

// Of layers [0, i), under one recompute mode.
struct LayerSums {
  std::vector<double> compute_s;   // forward and backward of a microbatch
  std::vector<double> parameters;  // of one TP rank
  std::vector<double> kept_bytes;  // stored for a microbatch of one sequence

  int layers() const { return static_cast<int>(compute_s.size()) - 1; }
  double compute_s_of(int first, int end) const { return of(compute_s, first, end); }
  double parameters_of(int first, int end) const { return of(parameters, first, end); }
  double kept_bytes_of(int first, int end) const { return of(kept_bytes, first, end); }

 private:
  static double of(const std::vector<double>& sums, int first, int end) {
    return sums[static_cast<size_t>(end)] - sums[static_cast<size_t>(first)];
  }
};

// A cache of them. Not thread-safe; the context must outlive it.
class LayerSumsTable {
 public:
  explicit LayerSumsTable(const PlanningContext& context) : context_(context) {}
  // nullptr if not profiled. Valid as long as the table. `splits_tokens`: with sequence parallelism.
  const LayerSums* find(const std::string& gpu_type, int microbatch, int tp, Recompute recompute,
                        bool splits_tokens = false);

 private:
  PlanningContext context_;
  std::map<std::tuple<std::string, int, int, Recompute, bool>, LayerSums> known_;  // empty: not profiled
};

// Splits the layers into as many runs as there are entries so that the slowest is as fast as possible: entry
// i computes by stages[i], and has at least one layer. Returns the ends. Requires no more entries than
// layers.
std::vector<int> balanced_cut(const std::vector<const LayerSums*>& stages);

}  // namespace sailor::bench
