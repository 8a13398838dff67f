#include "tests/bench/evaluation/comparison.h"

#include <fmt/format.h>

#include <algorithm>

#include "tests/bench/evaluation/charts.h"

namespace sailor::bench {
namespace {

bool is_counted(Against how) {
  return how == Against::reached || how == Against::missed;
}

Against against(const Scenario& scenario, const Baseline& theirs, const RowResult& ours) {
  return against(scenario, theirs, ours.iter_per_s.value_or(0), ours.usd_per_iter.value_or(0));
}

double ratio_of(Ratio of, const RowResult& ours, const Baseline& theirs) {
  return of == Ratio::throughput ? faster_by(ours, theirs) : cheaper_by(ours, theirs);
}

Cell ratio_cell(double ratio, bool counts) {
  if (ratio == 0) return {"-", Mark::aside};
  if (!counts) return factor(ratio);
  return {factor(ratio), ratio < 1 - kTolerance ? Mark::bad : Mark::good};
}

// The result as text.
Cell standing_cell(const Scenario& scenario, const RowResult& ours, const Baseline& theirs) {
  switch (against(scenario, theirs, ours)) {
    case Against::no_plan:
      return {ours.plan ? "we have a plan" : "no plan either", Mark::aside};
    case Against::outside_limits:
      return {"not counted: breaks the limit", Mark::aside};
    case Against::noted: {
      const bool reached =
          reaches(scenario, theirs, ours.iter_per_s.value_or(0), ours.usd_per_iter.value_or(0));
      return {"not counted: " + theirs.note + (reached ? "" : "; ours is worse"), Mark::aside};
    }
    case Against::missed:
      return {ours.plan ? "ours is worse" : "we have no plan", Mark::bad};
    case Against::reached:
      break;
  }
  const Ratio of = scenario.objective == Expense::cost ? Ratio::cost : Ratio::throughput;
  return {ratio_of(of, ours, theirs) > 1 + kTolerance ? "ours is better" : "equal", Mark::good};
}

void add_ours(ResultTable& table, const Scenario& scenario, const RowResult& ours) {
  std::string remark = ours.status;
  if (ours.plan && ours.gap_pct) remark = "within " + per_cent(*ours.gap_pct) + " % of the bound";
  if (!ours.plan && ours.status == "none") remark = "proven: no plan meets the limit";
  table.add({scenario.name,
             {"ours", Mark::ours},
             figure(ours.iter_per_s),
             figure(ours.usd_per_iter),
             "",
             "",
             {remark, Mark::aside},
             figure(ours.search_cpu_s, 2),
             "0",
             ours.plan ? gpus_used(*ours.plan) : "-"});
}

void add_theirs(ResultTable& table, const Scenario& scenario, const RowResult& ours, const Baseline& theirs) {
  const bool found = theirs.iter_per_s > 0, counts = is_counted(against(scenario, theirs, ours));
  const bool cost = scenario.objective == Expense::cost;
  // Only the objective of the scenario is good or bad.
  table.add({scenario.name, theirs.planner, figure(found ? std::optional(theirs.iter_per_s) : std::nullopt),
             figure(found ? std::optional(theirs.usd_per_iter) : std::nullopt),
             ratio_cell(faster_by(ours, theirs), counts && !cost),
             ratio_cell(cheaper_by(ours, theirs), counts && cost), standing_cell(scenario, ours, theirs),
             figure(theirs.search_cpu_s, 3), figure(theirs.plans_out_of_memory),
             found && !theirs.gpus.empty() ? theirs.gpus : "-"});
}

// Omits groups with only our planner, and planners without a plan.
std::string relative_chart(Study& study, const std::vector<const Scenario*>& scenarios, Ratio of) {
  BarChart chart;
  chart.title = of == Ratio::throughput ? "Throughput of others: the line is ours, higher is faster"
                                        : "Cost of others: the line is ours, higher is more expensive";
  chart.unit = "theirs over ours";
  chart.line = 1;
  for (const Scenario* scenario : scenarios) {
    const RowResult& ours = study.plan(*scenario);
    for (const Baseline& theirs : study.others(*scenario)) {
      const double ratio = ratio_of(of, ours, theirs);
      if (ratio == 0 || theirs.planner == kBestKnown) continue;
      chart.add(scenario->name, theirs.planner,
                {of == Ratio::throughput ? 1 / ratio : ratio, is_counted(against(*scenario, theirs, ours))});
    }
  }
  return chart.svg();
}

}  // namespace

void compare(Study& study, Section& section, const std::string& name,
             const std::vector<const Scenario*>& scenarios) {
  if (scenarios.empty()) {
    section.say(kNotAskedFor);
    return;
  }
  ResultTable table;
  table.name = name;
  table.caption =
      "Every planner on the same scenarios, scored by the published simulator. \"Faster\" and \"cheaper\" "
      "are the ratios by which ours is better: below 1, ours is worse; the standing is for the objective of "
      "the scenario. \"Too large\": plans that a planner ranks above its first one that fits the memory.";
  table.columns = {"scenario",   "planner",  "iterations/s",  "USD/iteration", "faster by",
                   "cheaper by", "standing", "search, CPU s", "too large",     "GPUs used"};
  for (const Scenario* scenario : scenarios) {
    const RowResult& ours = study.plan(*scenario);
    add_ours(table, *scenario, ours);
    for (const Baseline& theirs : study.others(*scenario)) add_theirs(table, *scenario, ours, theirs);
  }
  section.show(std::move(table));
  section.show(name + "-throughput", relative_chart(study, scenarios, Ratio::throughput));
  section.show(name + "-cost", relative_chart(study, scenarios, Ratio::cost));
  section.say("Pale bars are not counted; the table says why.");
}

Ratios ratios_to(Study& study, const std::vector<const Scenario*>& scenarios, Ratio of,
                 const std::string& planner) {
  Ratios out;
  for (const Scenario* scenario : scenarios) {
    const RowResult& ours = study.plan(*scenario);
    for (const Baseline& theirs : study.others(*scenario)) {
      if (planner.empty() ? theirs.planner == kPublishedPlanner || theirs.planner == kBestKnown
                          : theirs.planner != planner)
        continue;
      const double ratio = ratio_of(of, ours, theirs);
      if (ratio == 0) continue;
      PublishedTable::Ours one{
          planner.empty() ? fmt::format("{}, {}", theirs.planner, scenario->name) : scenario->name, ratio};
      if (scenario->ref.iter_per_s && scenario->ref.usd_per_iter)
        one.published_again = of == Ratio::throughput ? *scenario->ref.iter_per_s / theirs.iter_per_s
                                                      : theirs.usd_per_iter / *scenario->ref.usd_per_iter;
      const Against how = against(*scenario, theirs, ours);
      if (how == Against::noted)
        out.noted.push_back(std::move(one));
      else if (is_counted(how))
        out.counted.push_back(std::move(one));
    }
  }
  return out;
}

void add_published(PublishedTable& table, const std::string& what, double published, const Ratios& ours) {
  if (ours.counted.empty() && !ours.noted.empty())
    table.add_uncounted(what, published, "x", ours.noted,
                        "not counted: the published simulator is too optimistic for these plans of others");
  else
    table.add(what, published, "x", ours.counted, true, "the data pack has no run of it");
}

}  // namespace sailor::bench
