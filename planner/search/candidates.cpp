#include "planner/search/candidates.h"

#include <fmt/format.h>

#include <algorithm>

#include "planner/plan/place.h"
#include "planner/plan/validate.h"

namespace sailor {
namespace {

// Plans that are placed on nodes before one is chosen: so many, and as long as they are within this factor of
// the best. Until then every stage counts as a node of its own, and sums of gradients within a node are far
// faster.
constexpr int kMostPlaced = 16;
constexpr double kClose = 1.5;

// What a user would call a different plan: GPUs by type and zone, and the TP degrees of the stages of each
// kind of pipeline.
std::string structure(const Plan& plan) {
  std::map<std::pair<std::string, std::string>, int> gpus;
  std::map<std::string, int> shapes;
  for (const PlanPipeline& pipeline : plan.pipelines) {
    std::string shape;
    for (const PlanStage& stage : pipeline.stages) {
      gpus[{stage.gpu_type, stage.zone}] += stage.tp;
      shape += fmt::format("{}x{},", stage.tp, stage.gpu_type);
    }
    ++shapes[shape];
  }
  std::string key = plan.zero1 ? "zero1;" : "";
  for (const auto& [pool, count] : gpus) key += fmt::format("{}@{}={};", pool.first, pool.second, count);
  for (const auto& [shape, count] : shapes) key += fmt::format("{}*{};", count, shape);
  return key;
}

}  // namespace

void Candidates::keep(Plan plan, double value) {
  best_ = std::min(best_, value);
  auto [it, added] = plans_.try_emplace(structure(plan), value, plan);
  if (!added && value < it->second.first) it->second = {value, std::move(plan)};
}

double Candidates::value(const Prediction& prediction) const {
  return goal_.objective == Objective::throughput ? prediction.iteration_s : prediction.usd_per_iteration();
}

bool Candidates::accepted(const Prediction& prediction, std::map<std::string, int64_t>& rejected) const {
  const char* why = !prediction.fits                                 ? "memory"
                    : prediction.usd_per_iteration() > goal_.max_usd ? "budget"
                    : prediction.iteration_s > goal_.max_iteration_s ? "throughput floor"
                                                                     : nullptr;
  if (why != nullptr) ++rejected[why];
  return why == nullptr;
}

bool Candidates::score(const Plan& plan, std::map<std::string, int64_t>& rejected) {
  const Prediction prediction = simulate(context_, plan, model_);
  if (!accepted(prediction, rejected)) return false;
  keep(plan, value(prediction));
  return true;
}

std::vector<const Candidates::Entry*> Candidates::best_first() const {
  std::vector<const Entry*> order;
  for (const auto& [key, entry] : plans_) order.push_back(&entry);
  std::stable_sort(order.begin(), order.end(),
                   [](const Entry* a, const Entry* b) { return a->first < b->first; });
  return order;
}

std::vector<std::pair<double, Plan>> Candidates::ranked(size_t most) const {
  std::vector<Entry> out;
  for (const Entry* entry : best_first()) {
    if (out.size() == most) break;
    out.push_back(*entry);
  }
  return out;
}

std::vector<Candidate> Candidates::placed(int count, const std::function<bool()>& late,
                                          std::map<std::string, int64_t>& rejected) const {
  std::vector<Candidate> out;
  for (const Entry* entry : best_first()) {
    // Who shares a node with whom may change the order of those that are close.
    const bool enough = static_cast<int>(out.size()) >= count;
    const bool close = model_ == CostModel::native && static_cast<int>(out.size()) < kMostPlaced &&
                       entry->first < kClose * best_;
    if (enough && (!close || late())) break;
    Plan plan = entry->second;
    try {
      place(plan, resources_.usable);
    } catch (const std::runtime_error&) {
      ++rejected["no node has enough free GPUs together"];
      continue;
    }
    if (!check_plan(plan, resources_.usable).empty()) {
      ++rejected["no node has enough free GPUs together"];
      continue;
    }
    Candidate candidate{std::move(plan), {}};
    candidate.prediction = simulate(context_, candidate.plan, model_);
    if (accepted(candidate.prediction, rejected)) out.push_back(std::move(candidate));
  }
  std::stable_sort(out.begin(), out.end(), [&](const Candidate& a, const Candidate& b) {
    return value(a.prediction) < value(b.prediction);
  });
  if (static_cast<int>(out.size()) > count) out.resize(static_cast<size_t>(count));
  return out;
}

}  // namespace sailor
