// Every plan of the paper's search space on a small cluster, one by one: the oracle of search tests.
#pragma once

#include <cmath>
#include <functional>
#include <set>

#include "planner/plan/place.h"
#include "planner/plan/plan.h"
#include "tests/unit/planner/instance.h"

namespace sailor::test {

struct Optimum {
  double value = std::numeric_limits<double>::infinity();
  Plan plan;
};

// Minimizes `value` over all plans that can be placed; `value` is infinite for plans that are not allowed.
inline Optimum brute_force(const Instance& in, const std::function<double(const Plan&)>& value) {
  Optimum best;
  const int L = in.job.model.num_all_layers();
  std::set<std::pair<std::string, int>> choices;  // type, tp
  std::set<int> microbatches;
  int gpus = 0;
  for (const SnapshotNode& node : in.snapshot.nodes) {
    gpus += static_cast<int>(node.free_gpus.size());
    for (const auto& [cell, times] : in.profiles.layers.at(node.gpu_type).cells) {
      if (cell.second.gpus() <= static_cast<int>(node.free_gpus.size()))
        choices.insert({node.gpu_type, cell.second.tp});
      microbatches.insert(cell.first);
    }
  }
  const std::vector<std::pair<std::string, int>> options(choices.begin(), choices.end());
  for (int mb : microbatches) {
    if (mb > in.job.training.global_batch) continue;
    const int64_t total = num_microbatches(in.job.training.global_batch, mb);
    for (int D = 1; D <= gpus && D <= total; ++D)
      for (int P = 1; P * D <= gpus && P <= L; ++P)
        for (unsigned mask = 0; mask < (1u << (L - 1)); ++mask) {
          if (__builtin_popcount(mask) != P - 1) continue;
          std::vector<int> cuts = {0};
          for (int l = 1; l < L; ++l)
            if (mask >> (l - 1) & 1u) cuts.push_back(l);
          cuts.push_back(L);
          std::vector<size_t> pick(static_cast<size_t>(P) * D, 0);
          while (true) {
            std::vector<std::vector<StageSpec>> pipelines(D);
            int used = 0;
            for (int j = 0; j < D; ++j)
              for (int i = 0; i < P; ++i) {
                const auto& [type, tp] = options[pick[static_cast<size_t>(j) * P + i]];
                pipelines[j].push_back({cuts[i], cuts[i + 1], type, tp});
                used += tp;
              }
            if (used <= gpus) {
              Plan plan = make_plan(in, mb, pipelines);
              bool placed = true;
              Plan copy = plan;
              try {
                place(copy, in.snapshot);
              } catch (const std::runtime_error&) {
                placed = false;
              }
              if (placed)
                if (const double v = value(plan); v < best.value) best = {v, plan};
            }
            size_t digit = 0;
            while (digit < pick.size() && ++pick[digit] == options.size()) pick[digit++] = 0;
            if (digit == pick.size()) break;
          }
        }
  }
  return best;
}

}  // namespace sailor::test
