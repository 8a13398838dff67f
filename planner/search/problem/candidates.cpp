#include "planner/search/problem/candidates.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "planner/plan/feature_text.h"
#include "planner/plan/place.h"
#include "planner/plan/validate.h"
#include "planner/search/problem/plan_options.h"

namespace sailor {
std::string structure_of(const Plan& plan) {
  std::map<std::pair<std::string, std::string>, int> gpus;
  std::map<std::string, int> shapes;
  for (const PlanPipeline& pipeline : plan.pipelines) {
    std::string shape;
    for (int group = 0; group < num_groups(plan, pipeline); ++group) {
      const PlanStage& stage = pipeline.stages[static_cast<size_t>(group)];
      gpus[{stage.gpu_type, stage.zone}] += stage.shape.gpus();
      shape += fmt::format("{}x{},", stage.shape.gpus(), stage.gpu_type);
    }
    ++shapes[shape];
  }
  std::string key = plan.zero == Zero::none ? "" : zero_text(plan) + ";";
  if (plan.interleave > 1) key += fmt::format("interleave{};", plan.interleave);
  for (const auto& [pool, count] : gpus) key += fmt::format("{}@{}={};", pool.first, pool.second, count);
  for (const auto& [shape, count] : shapes) key += fmt::format("{}*{};", count, shape);
  return key;
}

Better better_by(const Goal& goal) {
  return [goal](const Candidate& a, const Candidate& b) {
    return goal.value(a.prediction.figures()) < goal.value(b.prediction.figures());
  };
}

void keep_best(std::vector<Candidate>& all, const Better& better, int count) {
  const auto sort = [&] {
    std::stable_sort(all.begin(), all.end(), [&](const Candidate& a, const Candidate& b) {
      return a.only_shown == b.only_shown ? better(a, b) : b.only_shown;
    });
  };
  sort();
  std::set<std::string> structures;
  std::erase_if(all, [&](const Candidate& candidate) {
    return !structures.insert(structure_of(candidate.plan)).second;
  });
  for (size_t i = kCandidates; i < all.size(); ++i) all[i].only_shown = true;
  sort();
  all.resize(std::min(all.size(), static_cast<size_t>(std::max(1, count))));
}

void add_candidates(SearchResult& result, std::vector<Candidate> others, const Goal& goal, int count) {
  std::vector<Candidate>& all = result.candidates;
  for (Candidate& candidate : others) all.push_back(std::move(candidate));
  keep_best(all, better_by(goal), count);
}

void drop_better_shown(std::vector<Candidate>& all, const Better& better) {
  const auto shown =
      std::find_if(all.begin(), all.end(), [](const Candidate& candidate) { return candidate.only_shown; });
  if (shown == all.begin() || shown == all.end()) return;
  const Candidate last = *std::prev(shown);
  all.erase(
      std::remove_if(shown, all.end(), [&](const Candidate& candidate) { return better(candidate, last); }),
      all.end());
}

void fill_in_predictions(SearchResult& result) {
  for (Candidate& candidate : result.candidates) {
    PlanPrediction p;
    p.iteration_s = candidate.prediction.iteration_s;
    p.spent = totals(candidate.prediction.spent);
    p.bound_iteration_s = result.bound_iteration_s;
    p.bound = result.bound;
    p.peak_memory_bytes = candidate.prediction.peak_memory_bytes();
    candidate.plan.prediction = p;
  }
}

void Candidates::keep(Plan plan, double value) {
  best_ = std::min(best_, value);
  auto [it, added] = plans_.try_emplace(structure_of(plan), value, plan);
  if (!added && value < it->second.first) it->second = {value, std::move(plan)};
}

double Candidates::value(const Prediction& prediction) const {
  return goal_.value(prediction.figures());
}

bool Candidates::accepted(const Prediction& prediction, std::map<std::string, int64_t>& rejected) const {
  const std::optional<Expense> exceeded = goal_.exceeded(prediction.figures());
  const char* why = !prediction.fits                                 ? "memory"
                    : exceeded                                       ? kind_of(*exceeded).limit
                    : prediction.iteration_s > goal_.max_iteration_s ? kThroughputFloor
                                                                     : nullptr;
  if (why != nullptr) ++rejected[why];
  return why == nullptr;
}

void Candidates::score(const Plan& plan, std::map<std::string, int64_t>& rejected) {
  const Prediction prediction = simulate(context_, plan, CostModel::published);
  if (accepted(prediction, rejected)) keep(plan, value(prediction));
}

std::vector<Candidate> Candidates::placed(int count, std::map<std::string, int64_t>& rejected) const {
  std::vector<const Entry*> order;
  for (const auto& [key, entry] : plans_) order.push_back(&entry);
  std::stable_sort(order.begin(), order.end(),
                   [](const Entry* a, const Entry* b) { return a->first < b->first; });
  const auto placeable = [&](Plan& plan) {
    try {
      place(plan, resources_.usable);
    } catch (const std::runtime_error&) {
      return false;
    }
    return check_plan(plan, resources_.usable).empty();
  };
  std::vector<Candidate> out;
  for (const Entry* entry : order) {
    if (static_cast<int>(out.size()) == count) break;
    Plan plan = entry->second;
    if (!placeable(plan)) {
      ++rejected["no node has enough free GPUs together"];
      continue;
    }
    Candidate candidate{std::move(plan), {}};
    candidate.prediction = simulate(context_, candidate.plan, CostModel::published);
    candidate.only_shown = out.size() >= kCandidates;
    if (accepted(candidate.prediction, rejected)) out.push_back(std::move(candidate));
  }
  // Of equal candidates, the one that is better in the other quantity.
  const auto key = [&](const Candidate& c) {
    return std::tuple(value(c.prediction), c.prediction.iteration_s, c.prediction.usd_per_iteration());
  };
  keep_best(
      out, [&](const Candidate& a, const Candidate& b) { return key(a) < key(b); }, count);
  return out;
}

}  // namespace sailor
