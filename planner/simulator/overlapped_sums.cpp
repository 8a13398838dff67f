#include "planner/simulator/overlapped_sums.h"

#include <algorithm>
#include <numeric>

namespace sailor::native {
namespace {

// When one stage has finished the backward of a layer, and with it all layers above.
double finished_s(const LastBackward& last, int layer, int first_layer) {
  double below_s = 0;
  for (int i = first_layer; i < layer; ++i) below_s += last.layers_s.at(static_cast<size_t>(i - first_layer));
  return last.end_s - below_s;
}

}  // namespace

OverlappedSums overlapped_sums(const Plan& plan, const std::vector<LayerGroup>& groups,
                               const std::vector<double>& sums_s, const std::vector<double>& processor_s,
                               const std::vector<double>& parameters,
                               const std::vector<std::vector<LastBackward>>& last_backwards,
                               const std::vector<std::vector<double>>& done_s) {
  const size_t D = plan.pipelines.size();
  const auto gpus_of = [&](size_t g, size_t j) {
    return static_cast<size_t>(groups[g].stage_of[j] % num_groups(plan, plan.pipelines[j]));
  };
  OverlappedSums out;
  out.of_group_s.assign(groups.size(), 0);
  out.begin_s.assign(groups.size(), 0);
  std::vector<std::vector<double>> free_s(D), own_s(D);  // when the rank can sum the next layer; its own work
  for (size_t j = 0; j < D; ++j) {
    free_s[j].assign(done_s[j].size(), 0);
    own_s[j].assign(done_s[j].size(), 0);
  }
  for (size_t g = groups.size(); g-- > 0;) {
    const LayerGroup& group = groups[g];
    double at_s = 0, backward_s = 0;
    for (size_t j = 0; j < D; ++j) {
      at_s = std::max(at_s, free_s[j][gpus_of(g, j)]);
      backward_s = std::max(backward_s, last_backwards[j][static_cast<size_t>(group.stage_of[j])].end_s);
    }
    const double all =
        std::accumulate(parameters.begin() + group.first_layer, parameters.begin() + group.end_layer, 0.0);
    const double links_s = std::max(0.0, sums_s[g] - processor_s[g]);
    for (int layer = group.end_layer; layer-- > group.first_layer;) {
      for (size_t j = 0; j < D; ++j) {
        const auto stage = static_cast<size_t>(group.stage_of[j]);
        at_s = std::max(
            at_s, finished_s(last_backwards[j][stage], layer, plan.pipelines[j].stages[stage].first_layer));
      }
      if (layer + 1 == group.end_layer) out.begin_s[g] = at_s;
      if (all > 0) at_s += links_s * parameters[static_cast<size_t>(layer)] / all;
    }
    out.of_group_s[g] = std::max(0.0, at_s - backward_s) + processor_s[g];
    for (size_t j = 0; j < D; ++j) {
      free_s[j][gpus_of(g, j)] = at_s;
      own_s[j][gpus_of(g, j)] += processor_s[g];
    }
  }
  out.end_s = done_s;
  for (size_t j = 0; j < D; ++j)
    for (size_t i = 0; i < done_s[j].size(); ++i)
      out.end_s[j][i] = std::max(done_s[j][i], free_s[j][i]) + own_s[j][i];
  return out;
}

}  // namespace sailor::native
