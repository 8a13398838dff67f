// A layer profile of a (model, GPU type) without measurements, from the catalog and, if available,
// measurements of other models on that type. Pure.
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "planner/profile/layer_profile.h"
#include "planner/profile/network_profile.h"
#include "planner/spec/catalog.h"
#include "planner/spec/framework_style.h"

namespace sailor {

// (microbatch, TP degree) to estimate.
struct EstimatedCells {
  std::set<int> microbatches = {1, 2, 4, 8, 16, 32, 64};
  std::set<int> tps = {1, 2, 4, 8};
};

// Nothing when the catalog lacks data of the type, or the shape of the model's family is unknown. Covers all
// of `cells` whose TP degree divides the model and is 1, or for which `network` has a link inside a node.
// `measured` are profiles on this type, mostly of other models: the mean ratio of their times to the
// estimates corrects the estimate, and the spread of the ratios is the uncertainty; without any it is
// kUncalibrated.
std::optional<LayerProfile> estimate_profile(const GpuType& type, const ModelSpec& model, Precision precision,
                                             const std::vector<ProfileFile>& measured,
                                             const NetworkProfile& network, const FrameworkStyle& style,
                                             const EstimatedCells& cells = {});

// Relative uncertainty of an estimate without measurements: roughly the 95th percentile error of calibrated
// estimates (etc/doc/simulator.md: 19 to 29 % except for one set).
inline constexpr double kUncalibrated = 0.25;

}  // namespace sailor
