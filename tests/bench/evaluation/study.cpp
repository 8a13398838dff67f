#include "tests/bench/evaluation/study.h"

#include <fmt/format.h>

#include <algorithm>

#include "planner/report/plan_text.h"

namespace sailor::bench {
namespace {

RowOptions row_options(double time_limit_s) {
  RowOptions options;
  options.time_limit_s = time_limit_s;
  options.quiet = true;
  return options;
}

}  // namespace

Study::Study(StudyOptions options)
    : options_(std::move(options)),
      data_(options_.reference),
      baselines_(load_baselines(options_.reference + "/baselines.csv")),
      numbers_(load_published_numbers(published_file())) {
  for (const std::string& file : {options_.reference + "/targets.csv", options_.clusters})
    for (Scenario& scenario : load_scenarios(file)) {
      if (num_gpus(scenario) <= options_.most_gpus)
        scenarios_.push_back(std::move(scenario));
      else
        ++left_out_;
    }
}

std::vector<const Scenario*> Study::scenarios(const std::string& prefix) const {
  std::vector<const Scenario*> out;
  for (const Scenario& scenario : scenarios_)
    if (scenario.name.starts_with(prefix)) out.push_back(&scenario);
  return out;
}

const Scenario* Study::scenario(const std::string& name) const {
  const auto it = std::find_if(scenarios_.begin(), scenarios_.end(),
                               [&](const Scenario& scenario) { return scenario.name == name; });
  return it == scenarios_.end() ? nullptr : &*it;
}

const RowResult& Study::plan(const Scenario& scenario) {
  const auto it = planned_.find(scenario.name);
  if (it != planned_.end()) return it->second;
  RowResult row = run_row(scenario, inputs(scenario), baselines_, row_options(options_.time_limit_s));
  return planned_.emplace(scenario.name, std::move(row)).first->second;
}

RowResult Study::plan_without(const Scenario& scenario, const std::set<std::string>& prunings) const {
  RowOptions options = row_options(options_.cell_limit_s);
  options.without = prunings;
  return run_row(scenario, inputs(scenario), {}, options);
}

std::vector<Baseline> Study::others(const Scenario& scenario) const {
  std::vector<Baseline> out;
  const auto add = [&](const char* name, const Reached& reached, const std::string& note,
                       std::optional<double> cpu_s) {
    if (!reached.iter_per_s && !reached.none && note.empty()) return;
    out.push_back({name, scenario.name, note, reached.iter_per_s.value_or(0),
                   reached.usd_per_iter.value_or(0), "", cpu_s, std::nullopt});
  };
  add(kPublishedPlanner, scenario.ref, scenario.ref_note, scenario.ref_cpu_s);
  add(kBestKnown, scenario.known, "", std::nullopt);
  for (const Baseline& baseline : baselines_)
    if (baseline.scenario == scenario.name) out.push_back(baseline);
  return out;
}

std::vector<PublishedNumber> Study::published(const std::string& where) const {
  std::vector<PublishedNumber> out;
  for (const PublishedNumber& number : numbers_)
    if (number.where == where) out.push_back(number);
  return out;
}

std::set<std::string> Study::planners() const {
  std::set<std::string> out;
  for (const Baseline& baseline : baselines_) out.insert(baseline.planner);
  return out;
}

void Study::count(const PublishedTable& table) {
  compared_ += table.compared();
  reached_ += table.reached();
  partly_ += table.partly();
}

double faster_by(const RowResult& ours, const Baseline& theirs) {
  return ours.iter_per_s && theirs.iter_per_s > 0 ? *ours.iter_per_s / theirs.iter_per_s : 0;
}

double cheaper_by(const RowResult& ours, const Baseline& theirs) {
  return ours.usd_per_iter && theirs.iter_per_s > 0 ? theirs.usd_per_iter / *ours.usd_per_iter : 0;
}

std::string gpus_used(const Plan& plan) {
  std::set<std::string> zones;
  for (const PlanPipeline& pipeline : plan.pipelines)
    for (const PlanStage& stage : pipeline.stages) zones.insert(stage.zone);
  return gpus_by_type(plan) + (zones.size() > 1 ? fmt::format(" in {} zones", zones.size()) : "");
}

int num_gpus(const Scenario& scenario) {
  int gpus = 0;
  for (const PoolSize& pool : scenario.pools) gpus += pool.gpus;
  return gpus;
}

}  // namespace sailor::bench
