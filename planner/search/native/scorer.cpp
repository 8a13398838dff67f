#include "planner/search/native/scorer.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace sailor::native {
namespace {

// What a user would call a different plan: pools, stages and TP degrees.
uint64_t structure_of(const PlanTemplate& of) {
  PlanTemplate same;
  same.zero = of.zero;
  same.interleave = of.interleave;
  for (const TemplateClass& pipelines : of.classes) {
    TemplateClass shape;
    shape.pipelines = pipelines.pipelines;
    for (const TemplateStage& stage : pipelines.stages) shape.stages.push_back({stage.option, 0, {}});
    same.classes.push_back(std::move(shape));
  }
  return hash_of(same);
}

// Interleaved chunks whose gradients are sharded are cut alike, and so are stages whose parameters are
// (check_plan()), in pipelines that share states.
bool has_rounds_in_one_order(const Space& space, const PlanTemplate& of) {
  if (of.zero < Zero::gradients || (of.zero == Zero::gradients && of.interleave == 1)) return true;
  const int group = zero_group_of(space, of);
  int pipelines = 0;
  for (size_t c = 0; c + 1 < of.classes.size(); ++c) {
    pipelines += of.classes[c].pipelines;
    const std::vector<TemplateStage>&one = of.classes[c].stages, &next = of.classes[c + 1].stages;
    if (group > 0 && pipelines % group == 0) continue;  // the next one begins a group
    if (!std::equal(
            one.begin(), one.end(), next.begin(), next.end(),
            [](const TemplateStage& a, const TemplateStage& b) { return a.end_layer == b.end_layer; }))
      return false;
  }
  return true;
}

constexpr double kNearBest = 1.1;  // other ways to settle a template may make it the best

// Further from the limits than any value within them.
constexpr double kBeyond = 1e15, kBeyondMemory = 1e30;

}  // namespace

Scorer::Scorer(const Space& space, const Goal& goal, int64_t steps, Deadline& deadline)
    : space_(space), goal_(goal), most_steps_(steps), deadline_(deadline), model_(space.kinds) {}

double Scorer::score(const PlanTemplate& given, double most) {
  if (!groups_states_ || given.zero == Zero::none) return score_settled(given, most);
  PlanTemplate of = given;
  of.zero_group = 0;
  double value = score_settled(of, most);
  // What is exchanged in every microbatch may be much faster within groups.
  if (of.zero < Zero::gradients && value > kNearBest * best_) return value;
  for (const int group : zero_groups_to_try(space_, of)) {
    of.zero_group = group;
    value = std::min(value, score_settled(of, std::min(most, value)));
  }
  return value;
}

double Scorer::score_settled(const PlanTemplate& given, double most) {
  if (!recomputes_as_needed_ && !space_.split_backward) return score_as_it_is(given, most);
  const auto score = [&](const PlanTemplate& settled) {
    return space_.split_backward ? score_split(settled, most) : score_as_it_is(settled, most);
  };
  PlanTemplate of = given;
  undo_delays(of);
  settle_recomputation(of);
  double value = score(of);
  if (!space_.may_offload || value > kNearBest * best_) return value;
  // What one stage takes longer at the end, all may.
  PlanTemplate other = of;
  settle_recomputation(other, Offloading::recomputing);
  if (other == of) return value;
  most = std::min(most, value);
  return std::min(value, score(other));
}

void Scorer::settle_recomputation(PlanTemplate& of, Offloading offloading) {
  if (!recomputes_as_needed_) return;
  for (size_t c = 0; c < of.classes.size(); ++c) recompute_least(space_, model_, of, c, offloading);
}

Delays Scorer::settle_delays(PlanTemplate& of) {
  Delays all;
  for (size_t c = 0; c < of.classes.size(); ++c) {
    const Delays delays = delay_weights(space_, model_, of, c);
    all.any = all.any || delays.any;
    all.limited = all.limited || delays.limited;
  }
  return all;
}

double Scorer::score_split(const PlanTemplate& whole, double most) {
  PlanTemplate of = whole;
  const Delays delays = settle_delays(of);
  double value = score_as_it_is(of, most);
  if (!delays.any && !delays.limited) return value;
  if (value > kNearBest * best_) return value;
  // Of whole backwards more of the gradient sums is overlapped.
  if (delays.any && of.pipelines() > 1) value = std::min(value, score_as_it_is(whole, std::min(most, value)));
  if (!delays.limited || !recomputes_as_needed_) return value;
  // Where microbatches are few, delays may gain more than recomputation costs.
  of = whole;
  for (size_t c = 0; c < of.classes.size(); ++c) delay_most(space_, of, c);
  settle_recomputation(of);
  settle_delays(of);
  return std::min(value, score_as_it_is(of, std::min(most, value)));
}

double Scorer::score_as_it_is(const PlanTemplate& of, double most) {
  const auto [known, is_new] = known_.at(hash_of(of));
  own_steps_ += 10;
  if (!is_new && (known.exact || known.value >= most)) return known.value;
  known.exact = true;
  known.value = compute(of, most, known.exact);
  if (known.exact && known.value < kBeyond) {
    if (best_ == kNever)
      std::erase_if(beyond_, [](const auto& entry) { return entry.second.first >= kBeyondMemory; });
    keep(kept_, known.value, of);
    best_ = std::min(best_, known.value);
  } else if (known.exact && known.value < kNever) {
    keep(beyond_, known.value, of);
  }
  return known.value;
}

void Scorer::keep(ByStructure& in, double value, const PlanTemplate& of) {
  const auto [kept, first] = in.try_emplace(structure_of(of), value, of);
  if (!first && value < kept->second.first) kept->second = {value, of};
}

double Scorer::compute(const PlanTemplate& of, double most, bool& exact) {
  ++scored_;
  own_steps_ += 300;
  if (!has_rounds_in_one_order(space_, of)) {
    ++rejected["interleaved chunks cut differently"];
    return kNever;
  }
  // Beyond the user's limits values go on, so that a search finds back.
  double most_s = kNever;
  if (most < kBeyond && !goal_.limits_expenses()) {
    if (!goal_.objective.expense())
      most_s = most;
    else if (!std::isfinite(goal_.max_iteration_s))
      most_s = most / idle_per_s(of);
  }
  if (most_s < kNever && least_pipeline_s(of) >= most_s) {
    exact = false;
    return most;
  }
  if (!assign(space_, of, plan_)) {
    ++rejected["no node has enough free GPUs together"];
    return kNever;
  }
  own_steps_ += 4 * static_cast<int64_t>(plan_.stages.size());
  bool fits = true;
  const Iteration iteration = model_.iteration_if_fits(plan_, most_s, fits);
  if (!fits) {
    ++rejected["memory"];
    // Where nothing fits a search goes to where less is missing.
    if (best_ < kNever) return kNever;
    return kBeyondMemory * (1 + model_.missing_memory(plan_));
  }
  if (iteration.iteration_s >= most_s) {
    exact = false;
    return most;
  }
  const Figures figures = iteration.figures();
  if (const std::optional<Expense> expense = goal_.exceeded(figures)) {
    ++rejected[kind_of(*expense).limit];
    return kBeyond * figures.spent[*expense] / goal_.most[*expense];
  }
  if (iteration.iteration_s > goal_.max_iteration_s) {
    ++rejected[kThroughputFloor];
    return kBeyond * iteration.iteration_s / goal_.max_iteration_s;
  }
  return goal_.value(figures);
}

double Scorer::idle_per_s(const PlanTemplate& of) const {
  double sum = 0;
  for (const TemplateClass& pipelines : of.classes)
    for (size_t g = 0; g < of.groups(pipelines); ++g)
      sum += pipelines.pipelines *
             space_.kinds[space_.options[static_cast<size_t>(pipelines.stages[g].option)].kind]
                 .rate[goal_.followed()]
                 .idle_per_s;
  return sum;
}

// A group of GPUs computes all of its microbatches after the first came through the groups before it, and,
// without split backwards, the last goes back through them; of several chunks on each group that is the first
// one.
double Scorer::least_pipeline_s(const PlanTemplate& of) {
  double least_s = 0;
  for (const TemplateClass& pipelines : of.classes) {
    const auto microbatches =
        static_cast<double>((pipelines.microbatches + pipelines.pipelines - 1) / pipelines.pipelines);
    const size_t groups = of.groups(pipelines);
    group_s_.assign(groups, 0);
    before_s_.assign(groups + 1, 0);
    int layer = 0;
    for (size_t i = 0; i < pipelines.stages.size(); ++i) {
      const TemplateStage& stage = pipelines.stages[i];
      if (stage.end_layer <= layer) return 0;  // no plan
      const KindTimes& times = space_.times(stage.option, of.microbatch_of(pipelines));
      const double stage_s =
          times.forward(layer, stage.end_layer) + times.backward(stage.recompute, layer, stage.end_layer);
      group_s_[i % groups] += stage_s;
      if (i < groups)
        before_s_[i + 1] =
            before_s_[i] + (space_.split_backward ? times.forward(layer, stage.end_layer) : stage_s);
      layer = stage.end_layer;
    }
    for (size_t g = 0; g < groups; ++g)
      least_s = std::max(least_s, microbatches * group_s_[g] + before_s_[g]);
  }
  own_steps_ += static_cast<int64_t>(of.classes.front().stages.size());
  return least_s;
}

bool Scorer::spent() {
  return steps() > most_steps_ || deadline_.expired();
}

std::vector<std::pair<double, PlanTemplate>> Scorer::ranked(size_t most) const {
  return best_of(kept_, most);
}

std::vector<std::pair<double, PlanTemplate>> Scorer::closest(size_t most) const {
  return best_of(beyond_, most);
}

std::vector<std::pair<double, PlanTemplate>> Scorer::best_of(const ByStructure& all, size_t most) {
  std::vector<std::pair<uint64_t, const std::pair<double, PlanTemplate>*>> order;
  for (const auto& [structure, kept] : all) order.emplace_back(structure, &kept);
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return std::pair(a.second->first, a.first) < std::pair(b.second->first, b.first);
  });
  std::vector<std::pair<double, PlanTemplate>> out;
  for (size_t i = 0; i < std::min(most, order.size()); ++i) out.push_back(*order[i].second);
  return out;
}

std::vector<std::pair<double, PlanTemplate>> Scorer::ranked_by_pools() const {
  std::set<std::set<int>> seen;
  std::vector<std::pair<double, PlanTemplate>> out;
  for (auto& entry : ranked(kept_.size())) {
    std::set<int> pools;
    for (const TemplateClass& of : entry.second.classes)
      for (const TemplateStage& stage : of.stages)
        pools.insert(space_.options[static_cast<size_t>(stage.option)].pool);
    if (seen.insert(std::move(pools)).second) out.push_back(std::move(entry));
  }
  return out;
}

}  // namespace sailor::native
