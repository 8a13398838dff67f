#include "planner/search/published/previous_shape.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace sailor {
namespace {

// Maximum factor on the previous number of pipelines, and the number of attempts without improvement after
// which the search ends once a plan was found.
constexpr double kFactor = 1.5;
constexpr int kMostWithoutGain = 4;

// One stage of the shape: the options that its replicas ran on, in any zone.
using Kinds = std::vector<int>;

std::optional<int> option_like(const Resources& resources, const StageCosts& costs, const PlanStage& stage) {
  std::string region;
  for (const Option& option : resources.options)
    if (option.zone == stage.zone) region = option.region;
  for (int o : costs.options()) {
    const Option& option = resources.options[o];
    if (option.gpu_type == stage.gpu_type && option.shape == stage.shape && option.region == region) return o;
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

// The placement class whose replicas are of these kinds, or of more than these; -1 when there is none.
int class_of(const ClassCosts& costs, const Kinds& kinds, int first, int end) {
  const Resources& resources = costs.resources();
  int slowest = kinds.front();
  ReplicaShape least = resources.options[slowest].shape;
  for (int o : kinds) {
    if (costs.stage().compute_s(o, first, end) > costs.stage().compute_s(slowest, first, end)) slowest = o;
    least = std::min(least, resources.options[o].shape);
  }
  int found = -1;
  for (int placement = 0; placement < costs.size(); ++placement) {
    const PlacementClass& m = costs.classes()[placement];
    const Option &of_class = resources.options[m.slowest()], &wanted = resources.options[slowest];
    if (!alike_but_for_zone(of_class, wanted) || of_class.region != wanted.region) continue;
    const bool mixes = m.groups.size() > 1;
    if (mixes == (kinds.size() > 1) && m.least == least) return placement;
    if (found < 0) found = placement;
  }
  return found;
}

// The configurations of one microbatch size with numbers of pipelines that are near, most pipelines first.
std::vector<const Configuration*> near_configurations(const SearchState& state, const Plan& previous,
                                                      int microbatch) {
  std::vector<const Configuration*> near;
  const auto before = static_cast<double>(previous.pipelines.size());
  for (const Configuration& c : state.configurations)
    if (c.costs->microbatch() == microbatch && c.replicas <= before * kFactor &&
        c.replicas * kFactor >= before)
      near.push_back(&c);
  std::stable_sort(near.begin(), near.end(),
                   [](const Configuration* a, const Configuration* b) { return a->replicas > b->replicas; });
  return near;
}

// The shape in placement classes of these costs; nothing when a stage does not fit there.
std::optional<PipelineTemplate> template_of(const TemplateProblem& problem, const Plan& previous,
                                            const std::vector<Kinds>& kinds) {
  PipelineTemplate pipeline;
  for (size_t i = 0; i < kinds.size(); ++i) {
    const PlanStage& stage = previous.pipelines.front().stages[i];
    const int placement = class_of(problem.costs, kinds[i], stage.first_layer, stage.end_layer);
    const int in_flight = static_cast<int>(kinds.size() - i);
    if (placement < 0 || problem.costs.allowed(placement, stage.first_layer, stage.end_layer, in_flight) == 0)
      return std::nullopt;
    pipeline.stages.push_back({stage.first_layer, stage.end_layer, placement});
  }
  return pipeline;
}

}  // namespace

void search_previous_shape(SearchState& state, const Plan& previous, Pass pass) {
  for (const int microbatch : {previous.microbatch, previous.microbatch * 2, previous.microbatch / 2}) {
    const std::vector<const Configuration*> near = near_configurations(state, previous, microbatch);
    if (near.empty()) continue;
    const std::vector<Kinds> kinds = kinds_of(state.resources, *near.front()->costs, previous);
    if (kinds.empty()) continue;
    int without_gain = 0;
    bool found = false;
    for (const Configuration* c : near) {
      if (state.expired() || (found && without_gain >= kMostWithoutGain)) break;
      if (state.worse(*c)) continue;
      const TemplateProblem problem = state.template_problem(*c, pass);
      const std::optional<PipelineTemplate> pipeline = template_of(problem, previous, kinds);
      if (!pipeline) break;
      const double best = state.best_sum;
      state.assign_template({problem.costs, c->replicas, c->rounds, problem.goal}, *pipeline, *c);
      found = found || state.best_sum < best;
      without_gain = state.best_sum < best ? 0 : without_gain + 1;
    }
  }
}

}  // namespace sailor
