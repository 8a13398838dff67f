#include "tests/bench/evaluation/comparison.h"

#include <fmt/format.h>

#include <algorithm>

#include "tests/bench/evaluation/charts.h"

namespace sailor::bench {
namespace {

Cell ratio_cell(double ratio, bool counts) {
  if (ratio == 0) return {"-", Mark::aside};
  if (ratio < 1 - kTolerance) return {factor(ratio), counts ? Mark::bad : Mark::plain};
  return {factor(ratio), counts ? Mark::good : Mark::plain};
}

// How we stand, in words.
Cell standing_cell(const Scenario& scenario, const RowResult& ours, const Baseline& theirs) {
  const double rate = ours.iter_per_s.value_or(0), usd = ours.usd_per_iter.value_or(0);
  switch (against(scenario, theirs, rate, usd)) {
    case Against::no_plan:
      return {ours.plan ? "we have a plan" : "no plan either", Mark::aside};
    case Against::outside_limits:
      return {"not counted: breaks the limit", Mark::aside};
    case Against::noted:
      return {fmt::format("not counted: {}{}", theirs.note,
                          reaches(scenario, theirs, rate, usd) ? "" : "; ours is worse"),
              Mark::aside};
    case Against::missed:
      return {ours.plan ? "ours is worse" : "we have no plan", Mark::bad};
    case Against::reached:
      break;
  }
  const double ratio =
      scenario.objective == Objective::cost ? cheaper_by(ours, theirs) : faster_by(ours, theirs);
  return {ratio > 1 + kTolerance ? "ours is better" : "equal", Mark::good};
}

void add_ours(ResultTable& table, const Scenario& scenario, const RowResult& ours) {
  std::string remark = ours.status;
  if (ours.plan && ours.gap_pct)
    remark = fmt::format("within {:.2f} % of the bound", std::max(0.0, *ours.gap_pct));
  if (!ours.plan && ours.status == "none") remark = "proven: no plan meets the limit";
  table.add({scenario.name,
             "ours",
             ours.plan ? gpus_used(*ours.plan) : "-",
             figure(ours.iter_per_s),
             figure(ours.usd_per_iter),
             "",
             "",
             figure(ours.search_cpu_s, 2),
             "0",
             {remark, Mark::aside}});
}

void add_theirs(ResultTable& table, const Scenario& scenario, const RowResult& ours, const Baseline& theirs) {
  const bool found = theirs.iter_per_s > 0;
  const Against how = against(scenario, theirs, ours.iter_per_s.value_or(0), ours.usd_per_iter.value_or(0));
  const bool counts = how == Against::reached || how == Against::missed;
  const bool cost = scenario.objective == Objective::cost;
  // Only what the scenario asks for is good or bad.
  table.add({scenario.name, theirs.planner, found && !theirs.gpus.empty() ? theirs.gpus : "-",
             figure(found ? std::optional(theirs.iter_per_s) : std::nullopt),
             figure(found ? std::optional(theirs.usd_per_iter) : std::nullopt),
             ratio_cell(faster_by(ours, theirs), counts && !cost),
             ratio_cell(cheaper_by(ours, theirs), counts && cost), figure(theirs.search_cpu_s, 3),
             figure(theirs.plans_out_of_memory), standing_cell(scenario, ours, theirs)});
}

std::string relative_chart(Study& study, const std::vector<const Scenario*>& scenarios, Ratio of) {
  BarChart chart;
  chart.title = of == Ratio::throughput ? "Throughput of others: the line is ours, higher is faster"
                                        : "Cost of others: the line is ours, higher is dearer";
  chart.unit = "theirs over ours";
  chart.line = 1;
  for (size_t group = 0; group < scenarios.size(); ++group) {
    const Scenario& scenario = *scenarios[group];
    chart.groups.push_back(scenario.name);
    const RowResult& ours = study.plan(scenario);
    for (const Baseline& theirs : study.others(scenario)) {
      if (theirs.planner == kBestKnown) continue;
      const double ratio = of == Ratio::throughput ? faster_by(ours, theirs) : cheaper_by(ours, theirs);
      if (ratio == 0) continue;
      auto series = std::find_if(chart.series.begin(), chart.series.end(),
                                 [&](const BarSeries& one) { return one.name == theirs.planner; });
      if (series == chart.series.end())
        series =
            chart.series.insert(series, {theirs.planner, std::vector<std::optional<Bar>>(scenarios.size())});
      const Against how = against(scenario, theirs, *ours.iter_per_s, *ours.usd_per_iter);
      series->bars[group] =
          Bar{of == Ratio::throughput ? 1 / ratio : ratio, how == Against::reached || how == Against::missed};
    }
  }
  return chart.svg();
}

}  // namespace

void compare(Study& study, Section& section, const std::string& name,
             const std::vector<const Scenario*>& scenarios) {
  if (scenarios.empty()) {
    section.say("No scenario of this section is among those that were asked for.");
    return;
  }
  ResultTable table;
  table.name = name;
  table.caption =
      "Every planner on the same scenarios, judged by the published simulator. \"Faster\" and \"cheaper\" "
      "say by "
      "how much ours is better: below 1, ours is worse.";
  table.columns = {
      "scenario",          "planner",    "GPUs used",     "iterations/s",          "USD/iteration",
      "ours is faster by", "cheaper by", "search, CPU s", "plans too large first", "standing"};
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
      const double ratio = of == Ratio::throughput ? faster_by(ours, theirs) : cheaper_by(ours, theirs);
      if (ratio == 0) continue;
      const Against how = against(*scenario, theirs, *ours.iter_per_s, *ours.usd_per_iter);
      const std::string label =
          planner.empty() ? fmt::format("{}, {}", theirs.planner, scenario->name) : scenario->name;
      if (how == Against::noted)
        out.noted.push_back({label, ratio});
      else if (how != Against::outside_limits)
        out.counted.push_back({label, ratio});
    }
  }
  return out;
}

void add_published(PublishedTable& table, const std::string& what, double published, const Ratios& ours) {
  if (!ours.counted.empty() || ours.noted.empty()) {
    table.add(what, published, "x", ours.counted, true,
              ours.counted.empty() ? "the data pack has no run of it" : "");
    return;
  }
  std::string list;
  for (const PublishedTable::Ours& one : ours.noted)
    list += fmt::format("{}{} ({})", list.empty() ? "" : ", ", factor(one.value), one.scenario);
  table.add(what, factor(published), list,
            "not counted: the published simulator scores these plans too well");
}

}  // namespace sailor::bench
