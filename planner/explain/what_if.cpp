#include "planner/explain/what_if.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <tuple>

#include "planner/process/seconds_since.h"
#include "planner/simulator/tightest_stage.h"
#include "planner/spec/error.h"

namespace sailor {
namespace {

constexpr size_t kMostNames = 4;  // zones, or GPU types, that are searched one by one: those with most GPUs
constexpr double kLargerBudget = 1.25, kMoreMemory = 1.25;

bool listed(const std::vector<std::string>& filter, const std::string& name) {
  return filter.empty() || std::find(filter.begin(), filter.end(), name) != filter.end();
}

// The inputs of one question, of which some are changed.
struct Question {
  WhatIf what;
  JobSpec job;
  Snapshot snapshot;
  Catalog catalog;
};

class Questions {
 public:
  Questions(const PlanningContext& context, const Candidate& chosen) : context_(context), chosen_(chosen) {
    const ResourceSpec& limits = context.job.resources;
    std::map<std::pair<std::string, std::string>, int> by_pool;  // within the quotas
    for (const SnapshotNode& node : context.snapshot.nodes) {
      if (node.free_gpus.empty() || !listed(limits.zones, node.zone) ||
          !listed(limits.partitions, node.partition) || limits.most_gpus(node.gpu_type, node.zone) == 0 ||
          !context.profiles.usable(node.gpu_type))
        continue;
      int& taken = by_pool[{node.gpu_type, node.zone}];
      const int gpus = std::min(static_cast<int>(node.free_gpus.size()),
                                limits.most_gpus(node.gpu_type, node.zone) - taken);
      taken += gpus;
      by_type_[node.gpu_type] += gpus;
      by_zone_[node.zone] += gpus;
      const SnapshotNode*& largest = largest_[node.gpu_type];
      if (largest == nullptr || preferred(node, *largest)) largest = &node;
    }
  }

  std::vector<Question> all(bool given, bool tight_memory) {
    if (given) ask(WhatIf::Kind::planner, "the planner's own choice");
    for (const std::string& type : most_gpus(by_type_)) one_more_node(type);
    budget();
    if (context_.job.constraints.min_iterations_per_s)
      ask(WhatIf::Kind::floor, "no limit on throughput").job.constraints.min_iterations_per_s.reset();
    if (tight_memory) more_memory();
    half();
    if (by_type_.size() > 1)
      for (const std::string& type : most_gpus(by_type_)) only_type(type);
    if (by_zone_.size() > 1)
      for (const std::string& zone : most_gpus(by_zone_))
        ask(WhatIf::Kind::zone, "only zone " + zone).job.resources.zones = {zone};
    return std::move(asked_);
  }

 private:
  // As a pattern for one more node: one with more GPUs, then one where the plan is, then by name.
  bool preferred(const SnapshotNode& node, const SnapshotNode& to) const {
    const auto key = [&](const SnapshotNode& n) {
      bool used = false;
      for (const PlanPipeline& pipeline : chosen_.plan.pipelines)
        for (const PlanStage& stage : pipeline.stages)
          used = used || (stage.zone == n.zone && stage.gpu_type == n.gpu_type);
      return std::tuple(-n.gpus, !used, n.name);
    };
    return key(node) < key(to);
  }

  Question& ask(WhatIf::Kind kind, const std::string& change) {
    Question question{{}, context_.job, context_.snapshot, context_.catalog};
    question.what.kind = kind;
    question.what.change = change;
    asked_.push_back(std::move(question));
    return asked_.back();
  }

  static std::vector<std::string> most_gpus(const std::map<std::string, int>& by_name) {
    std::vector<std::string> names;
    for (const auto& [name, gpus] : by_name) names.push_back(name);
    std::stable_sort(names.begin(), names.end(), [&](const std::string& a, const std::string& b) {
      return by_name.at(a) > by_name.at(b);
    });
    if (names.size() > kMostNames) names.resize(kMostNames);
    std::sort(names.begin(), names.end());
    return names;
  }

  // With the job's own limits, on the type and on all types together, raised by it.
  void one_more_node(const std::string& type) {
    SnapshotNode node = *largest_.at(type);
    const int gpus = std::max(node.gpus, static_cast<int>(node.free_gpus.size()));
    Question& question = ask(WhatIf::Kind::node,
                             fmt::format("one more node of {} ({} GPU{})", type, gpus, gpus == 1 ? "" : "s"));
    question.what.gpu_type = type;
    node.name += "+1";
    node.free_gpus.clear();
    for (int gpu = 0; gpu < gpus; ++gpu) node.free_gpus.push_back(gpu);
    question.snapshot.nodes.push_back(std::move(node));
    auto& quotas = question.job.resources.max_gpus;
    for (const std::string& name : {type, std::string(kTotalGpus)})
      if (const auto most = quotas.find(name); most != quotas.end()) most->second += gpus;
    auto& in_zone = question.job.resources.max_gpus_in_zone;
    if (in_zone.contains(type) && in_zone[type].contains(largest_.at(type)->zone))
      in_zone[type][largest_.at(type)->zone] += gpus;
  }

  void budget() {
    for (const Expense expense : kExpenses) {
      const std::optional<double> most = context_.job.constraints.most[expense];
      if (!most) continue;
      const ExpenseKind& kind = kind_of(expense);
      const auto with = [&](const std::string& change) -> std::optional<double>& {
        Question& question = ask(WhatIf::Kind::budget, change);
        question.what.expense = expense;
        return question.job.constraints.most[expense];
      };
      const char* article =
          std::string_view("aeiou").find(kind.limit[0]) == std::string_view::npos ? "a" : "an";
      with(fmt::format("{} {} of {:.4g} {} (+{:.0f}%)", article, kind.limit, *most * kLargerBudget, kind.unit,
                       100 * (kLargerBudget - 1))) = *most * kLargerBudget;
      with(fmt::format("no {}", kind.limit)).reset();
    }
  }

  void more_memory() {
    Question& question =
        ask(WhatIf::Kind::memory, fmt::format("{:.0f}% more memory on every GPU", 100 * (kMoreMemory - 1)));
    for (auto& [name, type] : question.catalog.gpu_types)
      type.memory_bytes = static_cast<int64_t>(static_cast<double>(type.memory_bytes) * kMoreMemory);
  }

  void half() {
    int all = 0;
    for (const auto& [type, gpus] : by_type_) all += gpus;
    if (all < 2) return;
    Question& question = ask(WhatIf::Kind::less, "half of the GPUs of each type");
    for (const auto& [type, gpus] : by_type_) {
      const auto most = question.job.resources.max_gpus.find(type);
      const int now = most == question.job.resources.max_gpus.end() ? gpus : std::min(gpus, most->second);
      question.job.resources.max_gpus[type] = by_type_.size() == 1 ? std::max(1, now / 2) : now / 2;
    }
  }

  void only_type(const std::string& type) {
    Question& question = ask(WhatIf::Kind::less, "only " + type);
    for (const auto& [other, gpus] : by_type_)
      if (other != type) question.job.resources.max_gpus[other] = 0;
  }

  const PlanningContext& context_;
  const Candidate& chosen_;
  std::map<std::string, int> by_type_, by_zone_;        // free GPUs that the job may use
  std::map<std::string, const SnapshotNode*> largest_;  // of each type
  std::vector<Question> asked_;
};

double gain_of(Objective objective, const Prediction& then, const Prediction& now) {
  const double a = objective.value(then.figures()), b = objective.value(now.figures());
  return a > 0 && b > 0 ? objective.gain(a, b) : 0;
}

void answer(Question& question, const PlanningContext& context, const PlanOptions& options,
            const Candidate& chosen, bool given) {
  const Objective objective = context.job.objective;
  try {
    SearchResult result = search(
        {question.job, question.snapshot, question.catalog, context.profiles, context.framework}, options);
    question.what.complete = result.stats.complete;
    if (result.status == SearchStatus::found)
      question.what.best = std::move(result.candidates.front());
    else
      question.what.why_not =
          result.status == SearchStatus::time_limit ? "no plan was found in time" : "no plan is possible";
  } catch (const InputError& error) {  // a zone or a type without what a plan needs
    question.what.why_not = error.what();
  }
  const auto worse = [&](const Prediction& p) {
    return objective.value(p.figures()) > objective.value(chosen.prediction.figures());
  };
  // A plan that was given need not be possible even now.
  if (!given && question.what.loosens() && (!question.what.best || worse(question.what.best->prediction)))
    question.what.best = chosen;
  if (question.what.best)
    question.what.gain = gain_of(objective, question.what.best->prediction, chosen.prediction);
}

// Of the searches for single zones only the best result is kept.
void keep_best_zone(std::vector<WhatIf>& answers) {
  const WhatIf* best = nullptr;
  for (const WhatIf& what : answers)
    if (what.kind == WhatIf::Kind::zone &&
        (best == nullptr || (what.best && (!best->best || what.gain > best->gain))))
      best = &what;
  if (best == nullptr) return;
  const std::string keep = best->change;
  std::erase_if(answers,
                [&](const WhatIf& what) { return what.kind == WhatIf::Kind::zone && what.change != keep; });
}

}  // namespace

std::vector<WhatIf> what_if(const PlanningContext& context, const PlanOptions& options,
                            const Candidate& chosen, bool given, double time_limit_s) {
  constexpr double kTightMemory = 0.5;
  constexpr double kLeastTime_s = 0.01;
  const bool tight = tightest_stage(chosen.prediction).part > kTightMemory;
  std::vector<Question> questions = Questions(context, chosen).all(given, tight);
  const auto start = std::chrono::steady_clock::now();
  std::vector<WhatIf> answers;
  for (size_t i = 0; i < questions.size(); ++i) {
    const double left_s = time_limit_s - seconds_since(start);
    PlanOptions quick = options;
    quick.explain = false;
    if (questions[i].what.kind == WhatIf::Kind::planner) {  // as where no plan is given
      quick.time_limit_s = std::min(options.time_limit_s, left_s);
    } else {
      quick.top_k = 1;
      quick.previous = {chosen.plan};
      quick.time_limit_s = std::min(options.time_limit_s, left_s / static_cast<double>(questions.size() - i));
      quick.effort_limit_s =
          std::min(options.effort_limit_s, time_limit_s / static_cast<double>(questions.size()));
    }
    if (quick.time_limit_s > kLeastTime_s) answer(questions[i], context, quick, chosen, given);
    answers.push_back(std::move(questions[i].what));
  }
  keep_best_zone(answers);
  return answers;
}

}  // namespace sailor
