#include "planner/profile/estimated_profile.h"

#include <algorithm>
#include <cmath>

#include "planner/profile/analytic_profile.h"
#include "planner/spec/error.h"

namespace sailor {
namespace {

constexpr int kMostMicrobatch = 64, kMostTp = 8;
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
    // The host's part is in the correction by what was measured.
    return analytic_times({shape,
                           style,
                           kernel_model(type, precision),
                           {},
                           precision,
                           microbatch,
                           Ring{tp, 1, 1, link(), nullptr},
                           0});
  }
};

// ln(measured / estimated) of every block that was measured.
std::vector<double> log_ratios(const Estimator& estimator, const std::vector<ProfileFile>& measured) {
  std::vector<double> ratios;
  for (const ProfileFile& profile : measured) {
    if (profile.precision != estimator.precision) continue;
    ModelSpec one_block = profile.model;
    one_block.layers = 1;
    const std::optional<TransformerShape> shape = known_shape(one_block);
    if (!shape) continue;
    for (const ProfileFile::TimeCell& cell : profile.times) {
      if (cell.kind != LayerKind::block || (cell.shape.gpus() > 1 && estimator.link() == nullptr)) continue;
      const LayerTimes estimate = estimator.cell(*shape, cell.microbatch, cell.shape.tp)[1];
      const double seen_s = cell.times.forward_s + cell.times.backward_s;
      if (seen_s > 0) ratios.push_back(std::log(seen_s / (estimate.forward_s + estimate.backward_s)));
    }
  }
  return ratios;
}

}  // namespace

std::optional<LayerProfile> estimate_profile(const GpuType& type, const ModelSpec& model, Precision precision,
                                             const std::vector<ProfileFile>& measured,
                                             const NetworkProfile& network, const FrameworkStyle& style) {
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
  profile.overheads.base_memory_bytes = type.base_memory_bytes;
  if (!measured.empty()) profile.overheads = measured.front().overheads;
  const double correction = std::exp(mean);
  for (int tp = 1; tp <= kMostTp; tp *= 2) {
    if (tp > 1 && (!model.splits_over({tp}) || estimator.link() == nullptr)) break;
    for (int microbatch = 1; microbatch <= kMostMicrobatch; microbatch *= 2) {
      LayerProfile::Cell cell = estimator.cell(*shape, microbatch, tp);
      for (LayerTimes& times : cell) {
        times.forward_s *= correction;
        times.backward_s *= correction;
        times.attention_s *= correction;
      }
      profile.cells.emplace(std::pair(microbatch, ReplicaShape{tp}), std::move(cell));
    }
  }
  return profile;
}

}  // namespace sailor
