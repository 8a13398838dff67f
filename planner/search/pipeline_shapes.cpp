#include "planner/search/pipeline_shapes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "planner/search/skeleton_search.h"

namespace sailor {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr size_t kMostShapes = 160;
constexpr int kMostStages = 3;       // of one pipeline: more are left to plans with one cut
constexpr int kMostGpusOfAPool = 8;  // in one pipeline
constexpr size_t kMostLimits = 1 << 10;
constexpr int kNoSync = -1000;  // less than any other step

void measure(Shape& shape, const StageCosts& costs) {
  for (size_t i = 0; i < shape.cut.stages.size(); ++i) {
    const Layout::Stage& stage = shape.cut.stages[i];
    const int option = stage.runs[0].option;
    const double compute = costs.compute_s(option, stage.first_layer, stage.end_layer);
    shape.fill_s += compute;
    shape.bottleneck_s = std::max(shape.bottleneck_s, compute);
    if (i + 1 == shape.cut.stages.size()) break;
    const int next = shape.cut.stages[i + 1].runs[0].option;
    const double forward = costs.activation_s(option, next, stage.end_layer);
    const double backward = costs.gradient_s(next, option, stage.end_layer);
    shape.fill_s += forward + backward;
    shape.bottleneck_s = std::max({shape.bottleneck_s, forward, backward});
  }
}

// GPUs of one pipeline.
int gpus_of(const Shape& shape, const Resources& resources) {
  int gpus = 0;
  for (const Layout::Stage& stage : shape.cut.stages) gpus += resources.options[stage.runs[0].option].tp;
  return gpus;
}

}  // namespace

bool within(const std::vector<int>& a, const std::vector<int>& b) {
  for (size_t c = 0; c < a.size(); ++c)
    if (a[c] > b[c]) return false;
  return true;
}

ShapeTable pipeline_shapes(const Resources& resources, ModeCosts& modes, double share, int pipelines,
                           const std::function<bool()>& expired) {
  const StageCosts& costs = modes.stage();
  // Enough for sums to count; where they share optimizer states, as many as there may be.
  const int replicas = costs.sharded() ? pipelines : 2;
  std::vector<ResourceLimit> limits = resource_limits(costs, resources, modes.modes(), true, kMostLimits);
  for (ResourceLimit& limit : limits)
    limit.capacity = replicas * std::min(limit.capacity, static_cast<double>(kMostGpusOfAPool));
  SkeletonProblem problem{modes, limits, replicas, share, 0, {Objective::throughput, kNever, kNever}};
  problem.max_labels = 20000;
  problem.max_stages = kMostStages;
  ShapeTable best;
  search_skeletons(
      problem, [] { return kNever; },
      [&](const Skeleton& skeleton) {
        Shape shape;
        shape.estimate_s = skeleton.iteration_s;
        shape.use.assign(resources.capacity.size(), 0);
        double sync_s = 0;
        for (const Skeleton::Stage& stage : skeleton.stages) {
          const int option = modes.modes()[stage.mode].slowest();
          shape.cut.stages.push_back({stage.first_layer, stage.end_layer, {{option, 1}}});
          sync_s = std::max(sync_s, modes.sync_s(stage.mode, stage.first_layer, stage.end_layer, replicas));
          for (size_t c = 0; c < shape.use.size(); ++c) shape.use[c] += resources.use[option][c];
        }
        const int step = sync_s > 0 ? static_cast<int>(std::ceil(2 * std::log2(sync_s))) : kNoSync;
        auto& entry = best[{shape.use, step}];
        if (entry.cut.stages.empty() || shape.estimate_s < entry.estimate_s) entry = std::move(shape);
      },
      expired);
  return best;
}

std::vector<Shape> shapes_up_to(const ShapeTable& table, int step, const Resources& resources,
                                const StageCosts& costs) {
  std::vector<Shape> shapes;
  for (const auto& [key, shape] : table) {
    if (key.second > step) continue;
    bool beaten = false;
    for (const auto& [other_key, other] : table)
      beaten = beaten || (&other != &shape && other_key.second <= step && within(other.use, shape.use) &&
                          (other.estimate_s < shape.estimate_s ||
                           (other.estimate_s == shape.estimate_s && other_key < key)));
    if (beaten) continue;
    shapes.push_back(shape);
    measure(shapes.back(), costs);
  }
  // Few GPU-seconds per microbatch first; they are what fills a cluster.
  const auto price = [&](const Shape& shape) { return gpus_of(shape, resources) * shape.bottleneck_s; };
  std::stable_sort(shapes.begin(), shapes.end(),
                   [&](const Shape& a, const Shape& b) { return price(a) < price(b); });
  if (shapes.size() > kMostShapes) shapes.resize(kMostShapes);
  return shapes;
}

}  // namespace sailor
