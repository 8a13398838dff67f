#include "tests/bench/native/layer_sums.h"

#include <algorithm>

#include "planner/profile/split_tokens.h"
#include "planner/simulator/lookup.h"

namespace sailor::bench {
namespace {

LayerSums sums_of(const LayerProfile::Cell& times, const std::vector<LayerSizes>& sizes,
                  Recompute recompute) {
  LayerSums out{{0}, {0}, {0}};
  for (size_t i = 0; i < times.size(); ++i) {
    double compute_s = times[i].forward_s + times[i].backward_s;
    const bool block = i > 0 && i + 1 < times.size();
    if (block && recompute == Recompute::full) compute_s += times[i].forward_s;
    if (block && recompute == Recompute::selective) compute_s += times[i].attention_s;
    out.compute_s.push_back(out.compute_s.back() + compute_s);
    out.parameters.push_back(out.parameters.back() + static_cast<double>(sizes[i].parameters));
    out.kept_bytes.push_back(out.kept_bytes.back() + static_cast<double>(sizes[i].kept_bytes(recompute)));
  }
  return out;
}

// The ends when no entry may take longer than `most_s`, if it can be. Later stages, which hold fewer
// microbatches, take as many layers as they can.
bool cut_within(const std::vector<const LayerSums*>& stages, double most_s, std::vector<int>& ends) {
  int end = stages[0]->layers();
  for (int i = static_cast<int>(stages.size()) - 1; i >= 0; --i) {
    const std::vector<double>& sums = stages[static_cast<size_t>(i)]->compute_s;
    ends[static_cast<size_t>(i)] = end;
    const auto to = sums.begin() + end;
    const int fit = static_cast<int>(
        std::lower_bound(sums.begin(), to, sums[static_cast<size_t>(end)] - most_s) - sums.begin());
    if (fit >= end) return false;
    end = std::max(fit, i);
  }
  return end == 0;
}

}  // namespace

const LayerSums* LayerSumsTable::find(const std::string& gpu_type, int microbatch, int tp,
                                      Recompute recompute, bool splits_tokens) {
  const auto [it, is_new] = known_.try_emplace({gpu_type, microbatch, tp, recompute, splits_tokens});
  if (is_new) {
    const auto profile = context_.profiles.layers.find(gpu_type);
    const std::vector<LayerSizes>* sizes = context_.profiles.sizes.find({tp});
    const LayerProfile::Cell* cell =
        profile == context_.profiles.layers.end() ? nullptr : profile->second.find(microbatch, {tp});
    if (cell != nullptr && sizes != nullptr) {
      LayerProfile::Cell times = *cell;
      std::vector<LayerSizes> held = *sizes;
      if (const auto* alone = context_.profiles.sizes.find({}); splits_tokens && tp > 1 && alone != nullptr) {
        const LinkEnd end{gpu_type, "", tp};
        split_tokens(times, {context_.job,
                             context_.framework,
                             context_.catalog.at(gpu_type),
                             context_.precision,
                             microbatch,
                             {.tp = tp},
                             find_link(context_.profiles.network, end, end, true)});
        split_tokens(held, *alone, tp);
      }
      it->second = sums_of(times, held, recompute);
    }
  }
  return it->second.compute_s.empty() ? nullptr : &it->second;
}

std::vector<int> balanced_cut(const std::vector<const LayerSums*>& stages) {
  std::vector<int> ends(stages.size()), best;
  double low_s = 0, high_s = 0;
  for (const LayerSums* stage : stages) high_s = std::max(high_s, stage->compute_s.back());
  constexpr int kHalvings = 24;
  for (int i = 0; i <= kHalvings; ++i) {
    const double most_s = i == 0 ? high_s : (low_s + high_s) / 2;
    if (cut_within(stages, most_s, ends)) {
      best = ends;
      high_s = most_s;
    } else {
      low_s = most_s;
    }
  }
  return best;
}

}  // namespace sailor::bench
