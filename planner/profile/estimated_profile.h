// A layer profile for a (model, GPU type) that nobody measured, from the catalog alone or, better, from the
// catalog and what was measured of other models on that type. Pure.
#pragma once

#include <optional>
#include <vector>

#include "planner/profile/layer_profile.h"
#include "planner/profile/network_profile.h"
#include "planner/spec/catalog.h"
#include "planner/spec/framework_style.h"

namespace sailor {

// Nothing when the catalog does not say enough about the type, or the model's family has no known shape.
// Microbatches of 1, 2, 4 ... 64 and TP degrees of 1, 2, 4, 8 as far as they divide the model and `network`
// knows a link inside a node. `measured` are profiles of other models on this very type: the mean ratio of
// their times to what would have been estimated corrects the estimate, and its spread becomes the
// uncertainty; without any it is kUncalibrated.
std::optional<LayerProfile> estimate_profile(const GpuType& type, const ModelSpec& model, Precision precision,
                                             const std::vector<ProfileFile>& measured,
                                             const NetworkProfile& network, const FrameworkStyle& style);

// Relative uncertainty of an estimate that nothing measured supports: about what calibrated estimates are off
// by at their 95th percentile (etc/doc/simulator.md: 19 to 29 % but for one set).
inline constexpr double kUncalibrated = 0.25;

}  // namespace sailor
