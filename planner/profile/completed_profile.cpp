#include "planner/profile/completed_profile.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>

#include "planner/profile/analytic_profile.h"
#include "planner/profile/estimated_profile.h"
#include "planner/spec/error.h"

namespace sailor {
namespace {

using Values = std::map<int, double>;  // by microbatch or TP degree

// At `x`, linear in log2 between the nearest values, constant beyond the first and the last. Requires a
// value.
double interpolated(const Values& values, int x) {
  const auto above = values.lower_bound(x);
  if (above == values.end()) return std::prev(above)->second;
  if (above == values.begin() || above->first == x) return above->second;
  const auto below = std::prev(above);
  const double from = std::log2(below->first),
               share = (std::log2(x) - from) / (std::log2(above->first) - from);
  return below->second + share * (above->second - below->second);
}

// measured / estimated, or the measured value itself where the estimate is 0.
double ratio_to(double estimated, double measured) {
  return estimated > 0 ? measured / estimated : measured;
}
double from_ratio(double estimated, double ratio) {
  return estimated > 0 ? estimated * ratio : ratio;
}

// The cells that were measured and estimated, by TP degree and microbatch.
struct Pair {
  const LayerProfile::Cell* measured;
  const LayerProfile::Cell* estimated;
};
using Pairs = std::map<int, std::map<int, Pair>>;

double ratio_at(const Pairs& pairs, int microbatch, int tp, size_t layer, double LayerTimes::*part) {
  Values by_tp;
  for (const auto& [of_tp, row] : pairs) {
    Values by_microbatch;
    for (const auto& [of_microbatch, pair] : row)
      by_microbatch[of_microbatch] = ratio_to((*pair.estimated)[layer].*part, (*pair.measured)[layer].*part);
    by_tp[of_tp] = interpolated(by_microbatch, microbatch);
  }
  return interpolated(by_tp, tp);
}

std::optional<std::vector<LayerSizes>> estimated_sizes(const ModelSpec& model, Precision precision,
                                                       const FrameworkStyle& style, ReplicaShape shape) {
  try {
    return analytic_sizes(shape_of(model), style, precision, shape);
  } catch (const InputError&) {  // the family has no known shape
    return std::nullopt;
  }
}

}  // namespace

void complete(LayerProfile& profile, const LayerProfile& estimate) {
  Pairs pairs;
  for (const auto& [key, cell] : profile.cells)
    if (const LayerProfile::Cell* estimated = estimate.find(key.first, key.second))
      pairs[key.second.tp][key.first] = {&cell, estimated};
  if (pairs.empty()) return;
  std::map<std::pair<int, ReplicaShape>, LayerProfile::Cell> added;
  for (const auto& [key, cell] : estimate.cells) {
    if (profile.cells.contains(key)) continue;
    LayerProfile::Cell& calibrated = added.emplace(key, cell).first->second;
    for (size_t layer = 0; layer < calibrated.size(); ++layer)
      for (double LayerTimes::*part :
           {&LayerTimes::forward_s, &LayerTimes::backward_s, &LayerTimes::update_s, &LayerTimes::attention_s,
            &LayerTimes::light_s, &LayerTimes::mlp_s, &LayerTimes::weight_s}) {
        double& value = calibrated[layer].*part;
        value = from_ratio(value, ratio_at(pairs, key.first, key.second.tp, layer, part));
      }
    profile.estimated.insert(key);
  }
  // One cell says nothing of how the ratio varies.
  if (!added.empty()) profile.uncertainty = profile.cells.size() == 1 ? kUncalibrated : estimate.uncertainty;
  profile.cells.merge(added);
}

void complete(ModelSizes& sizes, const ModelSpec& model, Precision precision, const FrameworkStyle& style,
              const std::set<ReplicaShape>& shapes) {
  const ModelSizes measured = sizes;
  std::map<ReplicaShape, std::vector<LayerSizes>> estimates;  // of measured shapes
  for (const auto& [shape, layers] : measured.by_shape)
    if (auto estimate = estimated_sizes(model, precision, style, shape);
        estimate && estimate->size() == layers.size())
      estimates.emplace(shape, std::move(*estimate));
  for (const ReplicaShape& shape : shapes) {
    if (measured.find(shape) != nullptr) continue;
    auto layers = estimated_sizes(model, precision, style, shape);
    if (!layers) return;
    for (size_t layer = 0; layer < layers->size() && !estimates.empty(); ++layer)
      for (int64_t LayerSizes::*size :
           {&LayerSizes::parameters, &LayerSizes::output_elements, &LayerSizes::activation_bytes,
            &LayerSizes::workspace_bytes, &LayerSizes::selective_bytes, &LayerSizes::light_bytes,
            &LayerSizes::mlp_bytes, &LayerSizes::checkpoint_bytes, &LayerSizes::tied_parameters,
            &LayerSizes::persistent_bytes, &LayerSizes::pending_bytes}) {
        Values ratios;
        for (const auto& [of, estimate] : estimates)
          ratios[of.tp] = ratio_to(static_cast<double>(estimate[layer].*size),
                                   static_cast<double>((*measured.find(of))[layer].*size));
        int64_t& value = (*layers)[layer].*size;
        value = std::llround(from_ratio(static_cast<double>(value), interpolated(ratios, shape.tp)));
      }
    sizes.by_shape.emplace(shape, std::move(*layers));
  }
}

}  // namespace sailor
