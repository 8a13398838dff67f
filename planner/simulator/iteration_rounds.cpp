// IterationModel: what replicas exchange in every microbatch.
#include <algorithm>
#include <utility>

#include "planner/simulator/iteration_model.h"
#include "planner/simulator/microbatch_rounds.h"

namespace sailor::native {
namespace {

// Do all pipelines that share states go through the rounds in one order? The trainer refuses other plans
// (check_plan()); as nobody runs them, their stages are predicted one by one.
bool has_one_order(const CompactPlan& plan, Zero zero) {
  if (zero < Zero::parameters && plan.interleave == 1) return true;
  const auto alike = [](const CompactStage& a, const CompactStage& b) {
    return a.first_layer == b.first_layer && a.end_layer == b.end_layer;
  };
  for (int j = 1; j < plan.pipelines(); ++j) {
    const auto one = plan.of(j), before = plan.of(j - 1);
    if (zero_group_of(plan, j) == zero_group_of(plan, j - 1) &&
        !std::equal(one.begin(), one.end(), before.begin(), before.end(), alike))
      return false;
  }
  return true;
}

}  // namespace

void IterationModel::add_rounds(const CompactPlan& plan, IterationDetails& details) {
  details.has_rounds = false;
  details.rounds.clear();
  details.cards.uses.clear();
  details.tied_s = details.least_rounds_s = 0;
  const PlanningContext& context = kinds_.context();
  const FrameworkStyle& style = context.framework;
  const Zero zero = zero_of(plan, kinds_);
  if (zero < Zero::gradients) return;
  details.has_rounds = true;
  const bool replayed = has_lockstep_rounds(style) && has_one_order(plan, zero);
  const PlanClasses& classes = details.classes;
  const Precision precision = context.precision;
  find_sums(plan, details);
  std::vector<std::vector<RoundTimes>> rounds =
      style.sums == FrameworkStyle::Sums::mesh
          ? mesh_rounds(plan, classes, details.groups, sums_, zero,
                        style.weight_bytes(precision) / style.sync_bytes_at(precision), details.cards)
          : ring_rounds(plan, classes, details.groups, ring_times_, kinds_, zero);
  // Pipelines that share states go through the rounds together.
  std::vector<int> most(static_cast<size_t>(num_zero_groups(plan)), 0);
  for (int j = 0; j < plan.pipelines(); ++j) {
    int& of_group = most[static_cast<size_t>(zero_group_of(plan, j))];
    of_group = std::max(of_group, plan.microbatches[static_cast<size_t>(j)]);
  }
  for (size_t c = 0; c < rounds.size(); ++c) {
    const int pipeline = classes.pipelines[c].pipeline,
              own = plan.microbatches[static_cast<size_t>(pipeline)],
              all = most[static_cast<size_t>(zero_group_of(plan, pipeline))];
    const auto stages = plan.of(pipeline);
    if (replayed) details.rounds.push_back({zero_group_of(plan, pipeline), own, {}});
    for (size_t i = 0; i < stages.size(); ++i) {
      const auto& [base, jitter] = details.layer_times[c][i];
      RoundTimes& of = rounds[c][i];
      std::vector<LayerWork> layers = layer_work(stages[i], *base, jitter, kinds_, plan.sequence_parallel);
      leave_out_tied(stages[i], kinds_, of);
      details.tied_s = std::max(details.tied_s, of.tied_s);
      steps_ += static_cast<int64_t>(layers.size());
      StageTimes& times = details.times[c][i];
      const double rounds_each = static_cast<double>(all) / own;
      if (!replayed) {
        const RoundDelays delays = round_delays(of, layers, rounds_each, style);
        times.forward_s += delays.forward_s;
        times.backward_s += delays.backward_s;
        continue;
      }
      times.backward_s += rounds_each * of.processor_s;
      details.rounds.back().stages.push_back({stages[i].first_layer, std::move(of.layers), std::move(layers),
                                              times.forward_s, times.backward_s, times.send_forward_s,
                                              times.send_backward_s});
    }
    if (replayed)
      details.least_rounds_s =
          std::max(details.least_rounds_s, all * least_exchange_s(details.rounds.back(), plan.interleave));
  }
}

void IterationModel::play_rounds(const CompactPlan& plan, bool with_events, IterationDetails& details) {
  const std::vector<PipelineClass>& classes = details.classes.pipelines;
  details.timelines.resize(classes.size());
  details.rounds_end_s.assign(static_cast<size_t>(details.classes.ranks()), 0);
  for (size_t c = 0; c < classes.size(); ++c)
    for (size_t i = 0; i < details.rounds[c].stages.size(); ++i)
      details.rounds[c].stages[i].ready_s = details.times[c][i].ready_s;
  RoundReplay replay = replay_rounds(details.rounds, details.cards, plan.interleave, with_events);
  steps_ += replay.steps * 8;
  for (size_t c = 0; c < classes.size(); ++c) {
    RoundReplay::Pipeline& of = replay.pipelines[c];
    for (size_t i = 0; i < of.waits.size(); ++i) {
      details.times[c][i].forward_s += of.waits[i].forward_s;
      details.times[c][i].backward_s += of.waits[i].backward_s;
    }
    std::ranges::copy(of.rounds_end_s, details.rounds_end_s.begin() + classes[c].first_rank);
    details.timelines[c] = std::move(of.timeline);
  }
}

void IterationModel::sum_after_rounds(const CompactPlan& plan, IterationDetails& details) const {
  const bool mesh = kinds_.context().framework.sums == FrameworkStyle::Sums::mesh;
  const PlanClasses& classes = details.classes;
  const auto rank_of = [&](size_t g, size_t c) { return rank_with(details.groups[g], plan, classes, c); };
  details.synced_s = details.rounds_end_s;
  // Those that have the layers of a group begin together.
  const auto sum = [&](size_t g, double sum_s) {
    double start_s = 0;
    for (size_t c = 0; c < classes.pipelines.size(); ++c)
      start_s = std::max(start_s, details.synced_s[rank_of(g, c)]);
    for (size_t c = 0; sum_s > 0 && c < classes.pipelines.size(); ++c)
      details.synced_s[rank_of(g, c)] = start_s + sum_s;
  };
  for (size_t g = 0; g < details.groups.size(); ++g) {
    for (size_t c = 0; c < classes.pipelines.size(); ++c)
      details.group_start_s[g] =
          std::max(details.group_start_s[g],
                   details.timelines[c].chunk_end_s[static_cast<size_t>(details.groups[g].stage_of[c])]);
    if (details.groups[g].first_layer == 0) sum(g, details.tied_s);
    if (!mesh) sum(g, ring_times_[g].copies_s);
  }
  for (size_t r = 0; mesh && r < sums_.copies_s.size(); ++r) details.synced_s[r] += sums_.copies_s[r];
  for (size_t g = 0; g < details.groups.size(); ++g)
    for (size_t c = 0; c < classes.pipelines.size(); ++c)
      details.group_sync_s[g] =
          std::max(details.group_sync_s[g], details.synced_s[rank_of(g, c)] - details.group_start_s[g]);
  details.stepping_s = details.synced_s;
  if (mesh)
    details.stepping_s.assign(details.synced_s.size(),
                              *std::ranges::max_element(details.synced_s) + sums_.tally_s);
}

}  // namespace sailor::native
