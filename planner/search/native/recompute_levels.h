// How much the stages of a template recompute, and whether they offload: the least that fits into memory,
// because both only cost time. For frameworks that have several levels (FrameworkStyle::recompute_parts).
// With others all stages recompute alike, whole, or some of their blocks (FrameworkStyle::recompute_some), or
// not at all.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "planner/search/native/plan_template.h"
#include "planner/simulator/iteration_model.h"

namespace sailor::native {

// Levels on the lower convex hull of what a block keeps, over what its backward takes longer; ascending from
// none. Mixtures of neighbours are the best for any memory.
using OfLevel = std::function<double(Recompute)>;
std::vector<Recompute> lower_hull(std::span<const Recompute> levels, const OfLevel& again_s,
                                  const OfLevel& kept_bytes);
// The same of a block of an option.
std::vector<Recompute> worthwhile_levels(const Space& space, int option, int microbatch);

// Which stages offload, of those whose memory is not enough for everything, in spaces that may.
enum class Offloading {
  cheaper,      // where recomputation takes longer
  recomputing,  // wherever there is less recomputation then
};

// Sets the stages of a class to the fastest mixtures of two levels with which their GPUs have enough memory;
// where there are none, it only offloads what it can. The class has its microbatches, and stages may delay
// weights.
void recompute_least(const Space& space, IterationModel& model, PlanTemplate& of, size_t pipeline_class,
                     Offloading offloading = Offloading::cheaper);

// Sets the stages of a template that recompute whole, and are cut alike in all classes, to the fewest blocks
// that the framework can recompute and with which all GPUs have enough memory; if there is no such number, it
// changes nothing.
void recompute_some(const Space& space, IterationModel& model, PlanTemplate& of);

}  // namespace sailor::native
