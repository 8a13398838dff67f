// Sums over runs of layers of a profile, for the rivals' own estimates: one subtraction each.
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
  std::vector<double> kept_bytes;  // by a microbatch of one sequence

  int layers() const { return static_cast<int>(compute_s.size()) - 1; }
  double compute_s_of(int first, int end) const { return of(compute_s, first, end); }
  double parameters_of(int first, int end) const { return of(parameters, first, end); }
  double kept_bytes_of(int first, int end) const { return of(kept_bytes, first, end); }

 private:
  static double of(const std::vector<double>& sums, int first, int end) {
    return sums[static_cast<size_t>(end)] - sums[static_cast<size_t>(first)];
  }
};

// All that were asked for. Not thread-safe; the context must outlive it.
class LayerSumsTable {
 public:
  explicit LayerSumsTable(const PlanningContext& context) : context_(context) {}
  // nullptr when that was not profiled. Lives as long as the table.
  const LayerSums* find(const std::string& gpu_type, int microbatch, int tp, Recompute recompute);

 private:
  PlanningContext context_;
  std::map<std::tuple<std::string, int, int, Recompute>, LayerSums> known_;  // empty: not profiled
};

// Cuts the layers into as many runs as there are entries, the slowest as fast as can be: entry i computes by
// stages[i], and has at least one layer. Returns the ends. Requires no more entries than layers.
std::vector<int> balanced_cut(const std::vector<const LayerSums*>& stages);

}  // namespace sailor::bench
