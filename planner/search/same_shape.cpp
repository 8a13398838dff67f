#include "planner/search/same_shape.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace sailor {
namespace {

// By this factor more or fewer pipelines than before are looked at, and so many in a row that bring nothing
// end it once something was found.
constexpr double kFactor = 1.5;
constexpr int kMostInVain = 4;

// One stage of the shape: the options that its replicas ran on, in any zone.
using Kinds = std::vector<int>;

std::optional<int> option_like(const Resources& resources, const StageCosts& costs, const PlanStage& stage) {
  std::string region;
  for (const Option& option : resources.options)
    if (option.zone == stage.zone) region = option.region;
  for (int o : costs.options()) {
    const Option& option = resources.options[o];
    if (option.gpu_type == stage.gpu_type && option.tp == stage.tp && option.region == region &&
        to_string(option.recompute) == stage.recompute)
      return o;
  }
  return std::nullopt;
}

// By stage; empty when the pipelines have no one cut, or an option is no longer there.
std::vector<Kinds> kinds_of(const Resources& resources, const StageCosts& costs, const Plan& plan) {
  const std::vector<PlanStage>& cut = plan.pipelines.front().stages;
  std::vector<Kinds> kinds(cut.size());
  for (const PlanPipeline& pipeline : plan.pipelines) {
    if (pipeline.stages.size() != cut.size()) return {};
    for (size_t i = 0; i < cut.size(); ++i) {
      const PlanStage& stage = pipeline.stages[i];
      if (stage.first_layer != cut[i].first_layer || stage.end_layer != cut[i].end_layer) return {};
      const std::optional<int> option = option_like(resources, costs, stage);
      if (!option) return {};
      if (std::find(kinds[i].begin(), kinds[i].end(), *option) == kinds[i].end()) kinds[i].push_back(*option);
    }
  }
  return kinds;
}

// The mode whose replicas are of these kinds, or of more than these; -1 when there is none.
int mode_of(const ModeCosts& costs, const Kinds& kinds, int first, int end) {
  const Resources& resources = costs.resources();
  int slowest = kinds.front(), least_tp = resources.options[slowest].tp;
  for (int o : kinds) {
    if (costs.stage().compute_s(o, first, end) > costs.stage().compute_s(slowest, first, end)) slowest = o;
    least_tp = std::min(least_tp, resources.options[o].tp);
  }
  int found = -1;
  for (int mode = 0; mode < costs.size(); ++mode) {
    const StageMode& m = costs.modes()[mode];
    const Option &of_mode = resources.options[m.slowest()], &wanted = resources.options[slowest];
    if (!alike_but_for_zone(of_mode, wanted) || of_mode.region != wanted.region) continue;
    const bool mixes = m.groups.size() > 1;
    if (mixes == (kinds.size() > 1) && m.least_tp == least_tp) return mode;
    if (found < 0) found = mode;
  }
  return found;
}

// The configurations of one microbatch size with numbers of pipelines that are near, most pipelines first.
std::vector<const Configuration*> near_configurations(const SearchState& state, const Plan& previous,
                                                      int microbatch) {
  std::vector<const Configuration*> near;
  const auto before = static_cast<double>(previous.pipelines.size());
  for (const Configuration& c : state.configurations)
    if (c.costs->microbatch() == microbatch && c.costs->sharded() == previous.zero1 &&
        c.replicas <= before * kFactor && c.replicas * kFactor >= before)
      near.push_back(&c);
  std::stable_sort(near.begin(), near.end(),
                   [](const Configuration* a, const Configuration* b) { return a->replicas > b->replicas; });
  return near;
}

// The shape in modes of these costs; nothing when a stage does not fit there.
std::optional<Skeleton> skeleton_of(const SkeletonProblem& problem, const Configuration& c,
                                    const Plan& previous, const std::vector<Kinds>& kinds) {
  Skeleton skeleton;
  for (size_t i = 0; i < kinds.size(); ++i) {
    const PlanStage& stage = previous.pipelines.front().stages[i];
    const int mode = mode_of(problem.costs, kinds[i], stage.first_layer, stage.end_layer);
    const int in_flight = static_cast<int>(kinds.size() - i);
    if (mode < 0 ||
        problem.costs.allowed(mode, stage.first_layer, stage.end_layer, in_flight, c.replicas) == 0)
      return std::nullopt;
    skeleton.stages.push_back({stage.first_layer, stage.end_layer, mode});
  }
  return skeleton;
}

}  // namespace

void search_same_shape(SearchState& state, const Plan& previous, Pass pass) {
  for (const int microbatch : {previous.microbatch, previous.microbatch * 2, previous.microbatch / 2}) {
    const std::vector<const Configuration*> near = near_configurations(state, previous, microbatch);
    if (near.empty()) continue;
    const std::vector<Kinds> kinds = kinds_of(state.resources, *near.front()->costs, previous);
    if (kinds.empty()) continue;
    int in_vain = 0;
    bool found = false;
    for (const Configuration* c : near) {
      if (state.expired() || (found && in_vain >= kMostInVain)) break;
      if (state.worse(*c)) continue;
      const SkeletonProblem problem = state.skeleton_problem(*c, pass);
      const std::optional<Skeleton> skeleton = skeleton_of(problem, *c, previous, kinds);
      if (!skeleton) break;
      const double best = state.best_sum;
      state.realize_skeleton({problem.costs, c->replicas, c->rounds, state.overhead_s, problem.goal},
                             *skeleton, *c);
      found = found || state.best_sum < best;
      in_vain = state.best_sum < best ? 0 : in_vain + 1;
    }
  }
}

}  // namespace sailor
