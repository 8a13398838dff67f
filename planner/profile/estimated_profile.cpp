#include "planner/profile/estimated_profile.h"

#include <algorithm>
#include <cmath>

#include "planner/profile/analytic_profile.h"
#include "planner/spec/error.h"

namespace sailor {
namespace {

constexpr double kLeastUncertainty = 0.05;

std::optional<TransformerShape> known_shape(const ModelSpec& model) {
  try {
    return shape_of(model);
  } catch (const InputError&) {
    return std::nullopt;
  }
}

struct Estimator {
  const GpuType& type;
  const NetworkProfile& network;
  const FrameworkStyle& style;
  Precision precision;

  const LinkCurve* link() const {
    const LinkEnd end{type.name, "", 1};
    return network.find(end, end, true);
  }

  LayerProfile::Cell cell(const TransformerShape& shape, int microbatch, int tp) const {
    // Where something was measured, the host's part is in the correction.
    return analytic_times({shape, style, kernel_model(type, precision), host_times(style), precision,
                           microbatch, Ring{tp, 1, 1, link(), nullptr}, 0});
  }
};

// ln(measured / estimated) of every block that was measured.
std::vector<double> log_ratios(const Estimator& estimator, const std::vector<ProfileFile>& measured) {
  std::vector<double> ratios;
  for (const ProfileFile& profile : measured) {
    if (profile.precision != estimator.precision) continue;
    ModelSpec every_kind = profile.model;
    every_kind.layers = 0;  // a file applies to any number of blocks
    every_kind = with_every_kind(every_kind);
    const std::optional<TransformerShape> shape = known_shape(every_kind);
    if (!shape) continue;
    for (const ProfileFile::TimeCell& cell : profile.times) {
      if (cell.kind == LayerKind::embedding || cell.kind == LayerKind::head ||
          (cell.shape.gpus() > 1 && estimator.link() == nullptr))
        continue;
      const LayerTimes estimate = estimator.cell(
          *shape, cell.microbatch, cell.shape.tp)[static_cast<size_t>(layer_of_kind(every_kind, cell.kind))];
      const double seen_s = cell.times.forward_s + cell.times.backward_s;
      if (seen_s > 0) ratios.push_back(std::log(seen_s / (estimate.forward_s + estimate.backward_s)));
    }
  }
  return ratios;
}

}  // namespace

std::optional<LayerProfile> estimate_profile(const GpuType& type, const ModelSpec& model, Precision precision,
                                             const std::vector<ProfileFile>& measured,
                                             const NetworkProfile& network, const FrameworkStyle& style,
                                             const EstimatedCells& cells) {
  const std::optional<TransformerShape> shape = known_shape(model);
  if (!shape || type.emulation || !has_kernel_model(type, precision)) return std::nullopt;
  const Estimator estimator{type, network, style, precision};
  const std::vector<double> ratios = log_ratios(estimator, measured);
  double mean = 0, spread = 0;
  for (double ratio : ratios) mean += ratio / static_cast<double>(ratios.size());
  for (double ratio : ratios) spread += (ratio - mean) * (ratio - mean) / static_cast<double>(ratios.size());

  LayerProfile profile;
  profile.gpu_type = type.name;
  profile.file = "estimate from the catalog";
  profile.uncertainty = ratios.empty() ? kUncalibrated : std::max(kLeastUncertainty, std::sqrt(spread));
  profile.overheads = overheads_of(style, {.base_memory_bytes = type.base_memory_bytes});
  if (!measured.empty()) profile.overheads = measured.front().overheads;
  const double correction = std::exp(mean);
  for (const int tp : cells.tps) {
    if (tp > 1 && (!model.splits_over({tp}) || estimator.link() == nullptr)) continue;
    for (const int microbatch : cells.microbatches) {
      LayerProfile::Cell cell = estimator.cell(*shape, microbatch, tp);
      for (LayerTimes& times : cell) {
        for (double LayerTimes::*part :
             {&LayerTimes::forward_s, &LayerTimes::backward_s, &LayerTimes::attention_s, &LayerTimes::light_s,
              &LayerTimes::mlp_s, &LayerTimes::weight_s})
          times.*part *= correction;
      }
      profile.estimated.emplace(microbatch, ReplicaShape{tp});
      profile.cells.emplace(std::pair(microbatch, ReplicaShape{tp}), std::move(cell));
    }
  }
  return profile;
}

}  // namespace sailor
