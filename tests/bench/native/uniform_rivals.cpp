#include "tests/bench/native/uniform_rivals.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "tests/bench/native/random_plan.h"
#include "tests/bench/native/uniform_shape.h"

namespace sailor::bench {
namespace {

std::vector<UniformFamily> families(const PlanningContext& context) {
  std::set<std::string> type_set, zone_set;
  std::set<int> degrees;
  for (const SnapshotNode& node : context.snapshot.nodes)
    if (!node.free_gpus.empty() && context.profiles.layers.contains(node.gpu_type)) {
      type_set.insert(node.gpu_type);
      zone_set.insert(node.zone);
      for (const ReplicaShape& shape : context.profiles.layers.at(node.gpu_type).shapes())
        degrees.insert(shape.tp);
    }
  const std::vector<std::string> types(type_set.begin(), type_set.end()),
      zones(zone_set.begin(), zone_set.end());
  // Every subset of a few names; else each one, and all.
  const auto choices = [](const std::vector<std::string>& all) {
    std::vector<std::vector<std::string>> out;
    constexpr size_t kFew = 3;
    for (size_t mask = 1; all.size() <= kFew && mask < size_t{1} << all.size(); ++mask) {
      out.emplace_back();
      for (size_t i = 0; i < all.size(); ++i)
        if (mask >> i & 1) out.back().push_back(all[i]);
    }
    if (all.size() <= kFew) return out;
    for (const std::string& one : all) out.push_back({one});
    out.push_back(all);
    return out;
  };
  std::vector<UniformFamily> out;
  for (const std::vector<std::string>& of_types : choices(types))
    for (const std::vector<std::string>& of_zones : choices(zones))
      for (int tp : degrees) {
        UniformFamily family{fmt::format("{}@{}", fmt::join(of_types, "+"), fmt::join(of_zones, "+")),
                             tp,
                             tp_groups(context.snapshot, of_types, of_zones, tp),
                             {},
                             of_types};
        for (const GpuGroup& group : family.groups)
          family.type_of.push_back(static_cast<int>(
              std::find(of_types.begin(), of_types.end(), group.node->gpu_type) - of_types.begin()));
        if (!family.groups.empty()) out.push_back(std::move(family));
      }
  return out;
}

std::set<int> stage_counts(int groups, int layers) {
  std::set<int> out;
  for (int stages = 1; stages <= std::min(groups, layers); ++stages)
    if (stages <= 16 || (stages <= 32 && stages % 2 == 0) || stages % 8 == 0 || (layers - 2) % stages == 0)
      out.insert(stages);
  return out;
}

std::set<int> replica_counts(int most, int64_t microbatches, int node_gpus) {
  constexpr int kFew = 24;
  most = static_cast<int>(std::min<int64_t>(most, microbatches));
  std::set<int> out;
  if (most <= kFew) {
    for (int d = 1; d <= most; ++d) out.insert(d);
    return out;
  }
  int divisor = most;
  while (microbatches % divisor != 0) --divisor;
  return {most, divisor, most - most % node_gpus, most * 3 / 4, most / 2, most / 4};
}

std::vector<Recompute> recomputations(const PlanFeatures& allowed) {
  std::vector<Recompute> out = {Recompute::none};
  if (allowed.contains(PlanFeature::selective_recompute)) out.push_back(Recompute::selective);
  if (allowed.contains(PlanFeature::recompute)) out.push_back(Recompute::full);
  return out;
}

// The most promising shapes so far.
class Shortlist {
 public:
  explicit Shortlist(size_t most) : most_(most) {}
  void add(const UniformShape& shape) {
    best_s_ = std::min(best_s_, shape.estimate_s);
    shapes_.push_back(shape);
    if (shapes_.size() >= 4 * most_) shorten();
  }
  bool hopeless(const UniformShape& shape) const { return shape.compute_s > 2 * best_s_; }
  std::vector<UniformShape> take() {
    shorten();
    return std::move(shapes_);
  }

 private:
  void shorten() {
    std::stable_sort(shapes_.begin(), shapes_.end(), [](const UniformShape& a, const UniformShape& b) {
      return a.estimate_s < b.estimate_s;
    });
    if (shapes_.size() > most_)
      shapes_.erase(shapes_.begin() + static_cast<std::ptrdiff_t>(most_), shapes_.end());
  }
  size_t most_;
  double best_s_ = kNeverEnds;
  std::vector<UniformShape> shapes_;
};

// The shape under every recomputation, ZeRO degree and interleave.
void add_variants(UniformShape shape, const PlanFeatures& allowed, UniformEstimator& estimator,
                  Shortlist& shortlist) {
  constexpr double kRoomy = 0.6;  // of memory: surely fits without more of what saves memory
  for (Recompute recompute : recomputations(allowed)) {
    bool roomy = true;
    for (const Zero zero : zero_degrees(allowed, shape.replicas)) {
      for (int interleave : {1, 2, 4}) {
        if (interleave > 1 && (shape.stages == 1 || !allowed.contains(PlanFeature::interleave))) continue;
        // Pipelines of other types are cut differently (can_sum_in_one_order()).
        const bool in_one_order = zero >= Zero::parameters || (interleave > 1 && zero == Zero::gradients);
        if (in_one_order && shape.family->types.size() > 1) continue;
        shape.recompute = recompute;
        shape.zero = zero;
        shape.interleave = interleave;
        shape.memory_part = 0;
        const bool possible = estimator.estimate(shape);
        roomy = roomy && shape.memory_part < kRoomy;
        if (!possible) continue;
        if (shortlist.hopeless(shape)) return;
        shortlist.add(shape);
      }
    }
    if (roomy) return;
  }
}

std::vector<UniformShape> promising(const PlanningContext& context, const PlanFeatures& allowed,
                                    const std::vector<UniformFamily>& all, UniformEstimator& estimator,
                                    size_t most) {
  Shortlist shortlist(most);
  const int layers = context.job.model.num_all_layers();
  for (const UniformFamily& family : all)
    for (int microbatch = 1; microbatch <= 64; microbatch *= 2) {
      const bool profiled =
          std::all_of(family.types.begin(), family.types.end(), [&](const std::string& type) {
            return estimator.model_s(type, microbatch, family.tp) < kNeverEnds;
          });
      if (!profiled) continue;
      const int64_t microbatches = num_microbatches(context.job.training.global_batch, microbatch);
      for (int stages : stage_counts(static_cast<int>(family.groups.size()), layers))
        for (int replicas : replica_counts(static_cast<int>(family.groups.size()) / stages, microbatches, 8))
          for (Placement placement : {Placement::by_pipeline, Placement::by_stage}) {
            if (placement == Placement::by_stage && (stages == 1 || replicas == 1)) continue;
            add_variants({&family, stages, replicas, microbatch, placement, Recompute::none, Zero::none, 1},
                         allowed, estimator, shortlist);
          }
    }
  return shortlist.take();
}

// Plans that combine one uniform shape for each type, in the order of `choices`: one of each list.
class Composer {
 public:
  Composer(Judge& judge, UniformEstimator& estimator) : judge_(judge), estimator_(estimator) {}

  void try_all(const std::vector<std::vector<UniformShape>>& choices, Zero zero) {
    if (chosen_.size() < choices.size()) {
      for (const UniformShape& shape : choices[chosen_.size()]) {
        chosen_.push_back(&shape);
        try_all(choices, zero);
        chosen_.pop_back();
      }
      return;
    }
    Plan plan;
    std::string name = "composed";
    std::vector<double> rates;
    for (const UniformShape* shape : chosen_) {
      Plan part = estimator_.plan(*shape);
      rates.insert(rates.end(), part.pipelines.size(), 1 / (shape->estimate_s * shape->replicas));
      part.pipelines.insert(part.pipelines.begin(), plan.pipelines.begin(), plan.pipelines.end());
      plan = std::move(part);
      name += " " + shape->name();
    }
    plan.zero = zero;
    if (!share_by_weight(plan, rates)) return;
    const std::optional<Verdict> verdict = judge_.verdict(plan);
    if (verdict && verdict->fits()) keep_faster(best_, Rival{name, std::move(plan), verdict->iteration_s});
  }
  std::optional<Rival> take() { return std::move(best_); }

 private:
  Judge& judge_;
  UniformEstimator& estimator_;
  std::vector<const UniformShape*> chosen_;
  std::optional<Rival> best_;
};

}  // namespace

std::optional<Rival> best_composed(Judge& judge) {
  constexpr size_t kShapes = 2000, kEach = 4;  // of a type; of those, with one microbatch size
  const std::vector<UniformFamily> all = families(judge.context());
  UniformEstimator estimator(judge.context());
  std::map<std::string, std::vector<UniformShape>> by_type;  // most promising first
  std::map<std::string, std::vector<UniformFamily>> of_one_type;
  for (const UniformFamily& family : all)
    if (family.types.size() == 1) of_one_type[family.types[0]].push_back(family);
  for (const auto& [type, of_type] : of_one_type)
    by_type[type] = promising(judge.context(), judge.allowed(), of_type, estimator, kShapes);
  Composer composer(judge, estimator);
  for (int microbatch = 1; microbatch <= 64; microbatch *= 2)
    for (const Zero zero : zero_degrees(judge.allowed())) {
      std::vector<std::vector<UniformShape>> choices;
      for (const auto& [type, shapes] : by_type) {
        std::vector<UniformShape> some;
        for (const UniformShape& shape : shapes)
          if (some.size() < kEach && shape.microbatch == microbatch && shape.interleave == 1 &&
              (shape.zero == zero || shape.replicas == 1))
            some.push_back(shape);
        if (!some.empty()) choices.push_back(std::move(some));
      }
      if (choices.size() < 2) continue;
      composer.try_all(choices, zero);
      // Without one of the types.
      for (size_t without = 0; choices.size() > 2 && without < choices.size(); ++without) {
        std::vector<std::vector<UniformShape>> others = choices;
        others.erase(others.begin() + static_cast<std::ptrdiff_t>(without));
        composer.try_all(others, zero);
      }
    }
  return composer.take();
}

std::optional<Rival> best_uniform(Judge& judge, int64_t most_simulations) {
  const std::vector<UniformFamily> all = families(judge.context());
  UniformEstimator estimator(judge.context());
  // Those that do not fit do not count, up to twice as many.
  const std::vector<UniformShape> shapes =
      promising(judge.context(), judge.allowed(), all, estimator, static_cast<size_t>(3 * most_simulations));
  std::optional<Rival> best;
  int64_t left = most_simulations;
  for (const UniformShape& shape : shapes) {
    if (left == 0) break;
    Plan plan = estimator.plan(shape);
    const std::optional<Verdict> verdict = judge.verdict(plan);
    if (!verdict || !verdict->fits()) continue;
    --left;
    keep_faster(best, Rival{shape.name(), std::move(plan), verdict->iteration_s});
  }
  return best;
}

std::vector<Rival> uniform_plans_by_estimate(const PlanningContext& context, const PlanFeatures& allowed,
                                             size_t most) {
  const std::vector<UniformFamily> all = families(context);
  UniformEstimator estimator(context);
  std::vector<Rival> out;
  for (const UniformShape& shape : promising(context, allowed, all, estimator, most))
    out.push_back({shape.name(), estimator.plan(shape), shape.estimate_s});
  return out;
}

}  // namespace sailor::bench
