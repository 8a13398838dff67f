#include "planner/search/compose.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "planner/search/layout.h"
#include "planner/search/skeleton_search.h"

namespace sailor {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr size_t kMostShapes = 160;
constexpr int kMostStages = 3;       // of one pipeline: more are left to plans with one cut
constexpr int kMostGpusOfAPool = 8;  // in one pipeline
constexpr size_t kMostLimits = 1 << 10;
constexpr int kNoSync = -1000;               // less than any other step
constexpr int64_t kMostTableWork = 2000000;  // knapsack states x shapes

// One pipeline: what it uses and how fast it is.
struct Shape {
  Layout cut;  // one replica per stage
  double estimate_s = 0;
  std::vector<int> use;
  double bottleneck_s = 0;
  double fill_s = 0;  // one microbatch alone

  int microbatches_in(double target_s) const {
    if (target_s < fill_s) return 0;
    return bottleneck_s > 0
               ? static_cast<int>(std::min(1e9, std::floor((target_s - fill_s) / bottleneck_s))) + 1
               : 1;
  }
  double time_s(int microbatches) const { return fill_s + (microbatches - 1) * bottleneck_s; }
};

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

bool within(const std::vector<int>& a, const std::vector<int>& b) {
  for (size_t c = 0; c < a.size(); ++c)
    if (a[c] > b[c]) return false;
  return true;
}

// GPUs of one pipeline.
int gpus_of(const Shape& shape, const Resources& resources) {
  int gpus = 0;
  for (const Layout::Stage& stage : shape.cut.stages) gpus += resources.options[stage.runs[0].option].tp;
  return gpus;
}

// Good shapes for pipelines that take about `share` microbatches, by what they use and by how long their
// gradients take to sum, in steps of sqrt(2).
using ShapeTable = std::map<std::pair<std::vector<int>, int>, Shape>;

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

// Shapes whose sums take at most `step`, and that no other of them beats with the same resources or less.
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

using Selection = std::vector<int>;  // indices of shapes, one per pipeline

// The selection that pushes most microbatches through in `target_s`, at least `total`, or nothing.
class Knapsack {
 public:
  Knapsack(const std::vector<Shape>& shapes, const std::vector<int>& capacity)
      : shapes_(shapes), capacity_(capacity) {
    states_ = 1;
    for (int c : capacity) {
      stride_.push_back(states_);
      states_ *= c + 1;
      if (states_ > kMostTableWork) break;
    }
    exact_ = states_ <= kMostTableWork && states_ * static_cast<int64_t>(shapes.size()) <= kMostTableWork;
    for (const Shape& shape : shapes) {
      int64_t offset = 0;
      for (size_t c = 0; exact_ && c < capacity.size(); ++c) offset += stride_[c] * shape.use[c];
      offset_.push_back(offset);
    }
  }

  std::optional<Selection> fill(double target_s, int64_t total) const {
    std::vector<int> worth;
    for (const Shape& shape : shapes_) worth.push_back(shape.microbatches_in(target_s));
    return exact_ ? by_table(worth, total) : greedy(worth, total);
  }

 private:
  std::optional<Selection> by_table(const std::vector<int>& worth, int64_t total) const {
    std::vector<int64_t> most(states_, 0);
    std::vector<int> last(states_, -1);
    std::vector<int> left(capacity_.size(), 0);
    for (int64_t state = 1; state < states_; ++state) {
      for (size_t c = 0; c < left.size(); ++c)  // next state in mixed radix
        if (++left[c] <= capacity_[c])
          break;
        else
          left[c] = 0;
      for (size_t s = 0; s < shapes_.size(); ++s) {
        if (worth[s] == 0 || !within(shapes_[s].use, left)) continue;
        const int64_t value = most[state - offset_[s]] + worth[s];
        if (value > most[state]) {
          most[state] = value;
          last[state] = static_cast<int>(s);
        }
      }
    }
    if (most[states_ - 1] < total) return std::nullopt;
    Selection out;
    for (int64_t state = states_ - 1; last[state] >= 0; state -= offset_[last[state]])
      out.push_back(last[state]);
    return out;
  }

  // Shapes in order of microbatches per share of the scarcest counter, each as often as it fits.
  std::optional<Selection> greedy(const std::vector<int>& worth, int64_t total) const {
    std::vector<size_t> order(shapes_.size());
    for (size_t s = 0; s < order.size(); ++s) order[s] = s;
    const auto density = [&](size_t s) {
      double share = 0;
      for (size_t c = 0; c < capacity_.size(); ++c)
        if (shapes_[s].use[c] > 0) share += static_cast<double>(shapes_[s].use[c]) / capacity_[c];
      return worth[s] / share;
    };
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return density(a) > density(b); });
    std::vector<int> left = capacity_;
    Selection out;
    int64_t value = 0;
    for (size_t s : order)
      while (value < total && worth[s] > 0 && within(shapes_[s].use, left)) {
        for (size_t c = 0; c < left.size(); ++c) left[c] -= shapes_[s].use[c];
        out.push_back(static_cast<int>(s));
        value += worth[s];
      }
    if (value < total) return std::nullopt;
    return out;
  }

  const std::vector<Shape>& shapes_;
  const std::vector<int>& capacity_;
  std::vector<int64_t> stride_, offset_;
  int64_t states_ = 1;
  bool exact_ = true;
};

// Gives every pipeline what it manages in the target time, then takes the surplus from whoever ends last.
Plan assemble(const PlanningContext& context, const Resources& resources, const std::vector<Shape>& shapes,
              Selection selection, const StageCosts& costs, double target_s, int64_t total) {
  const int microbatch = costs.microbatch();
  std::sort(selection.begin(), selection.end());
  // The least target in which this selection manages it: little surplus is left to take away one by one.
  const auto managed = [&](double t) {
    int64_t sum = 0;
    for (int s : selection) sum += std::min<int64_t>(total, shapes[s].microbatches_in(t));
    return sum;
  };
  double low = 0;
  for (int step = 0; step < 60; ++step) {
    const double middle = (low + target_s) / 2;
    (managed(middle) >= total ? target_s : low) = middle;
  }
  std::vector<int> share;
  int64_t sum = 0;
  for (int s : selection) {
    share.push_back(static_cast<int>(std::min<int64_t>(total, shapes[s].microbatches_in(target_s))));
    sum += share.back();
  }
  for (; sum > total; --sum) {
    size_t latest = 0;
    double latest_s = -1;
    for (size_t p = 0; p < selection.size(); ++p)
      if (share[p] > 0 && shapes[selection[p]].time_s(share[p]) > latest_s) {
        latest = p;
        latest_s = shapes[selection[p]].time_s(share[p]);
      }
    --share[latest];
  }
  Plan plan;
  plan.zero1 = costs.sharded();
  plan.model = context.job.model.name;
  plan.global_batch = context.job.training.global_batch;
  plan.microbatch = microbatch;
  for (size_t p = 0; p < selection.size(); ++p) {
    if (share[p] == 0) continue;
    PlanPipeline pipeline =
        plan_of(context, resources, shapes[selection[p]].cut, microbatch, 1).pipelines.front();
    pipeline.microbatches = share[p];
    plan.pipelines.push_back(std::move(pipeline));
  }
  return plan;
}

// The selection that ends first, as far as sums tell.
std::optional<Plan> fastest_selection(const PlanningContext& context, const Resources& resources,
                                      const std::vector<Shape>& shapes, const StageCosts& costs,
                                      int64_t total, const std::function<bool()>& expired) {
  const Knapsack knapsack(shapes, resources.capacity);
  double high = kNever;
  for (const Shape& shape : shapes) high = std::min(high, shape.time_s(static_cast<int>(total)));
  double low = 0;
  std::optional<Selection> best = knapsack.fill(high, total);
  for (int step = 0; step < 14 && !expired(); ++step) {
    const double middle = (low + high) / 2;
    if (std::optional<Selection> selection = knapsack.fill(middle, total)) {
      best = std::move(selection);
      high = middle;
    } else {
      low = middle;
    }
  }
  if (!best) return std::nullopt;
  return assemble(context, resources, shapes, *best, costs, high, total);
}

}  // namespace

std::vector<Plan> composed_plans(const PlanningContext& context, const Resources& resources,
                                 const StageCosts& costs, const std::function<bool()>& expired) {
  const int64_t total = num_microbatches(context.job.training.global_batch, costs.microbatch());
  if (total > 1000000) return {};
  ModeCosts modes(costs, resources, pure_modes(costs, resources), Replicas::any);
  if (modes.modes().empty()) return {};
  std::vector<Plan> plans;
  // A pipeline's share decides between short and fast shapes; the right one is not known before, so a few are
  // tried.
  for (int pipelines : {2, 4, 16}) {
    if (expired()) break;
    const double share = std::max(1.0, static_cast<double>(total) / pipelines);
    const ShapeTable table = pipeline_shapes(resources, modes, share, pipelines, expired);
    // Sums of gradients are not in the selection; how long they may take is tried instead.
    std::set<int, std::greater<int>> steps;
    for (const auto& [key, shape] : table) steps.insert(key.second);
    for (int step : steps) {
      if (expired()) break;
      const std::vector<Shape> shapes = shapes_up_to(table, step, resources, costs);
      if (auto plan = fastest_selection(context, resources, shapes, costs, total, expired))
        plans.push_back(std::move(*plan));
    }
  }
  return plans;
}

}  // namespace sailor
