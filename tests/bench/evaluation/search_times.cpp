// Tables 1 to 3: see sections.h.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "planner/search/search.h"
#include "tests/bench/evaluation/charts.h"
#include "tests/bench/evaluation/sections.h"
#include "tests/bench/prunings.h"

namespace sailor::bench {
namespace {

constexpr double kClock_s = 1e-4;  // minimum in charts

// The scenario of a row of tables 1 and 2: throughput, without limits, one zone, these numbers of GPUs, this
// model.
const Scenario* meant_by(const Study& study, const std::string& quantity) {
  int first = 0, second = 0;
  const int counts = std::sscanf(quantity.c_str(), "search time%*[ on]%d %*s + %d", &first, &second);
  for (const Scenario* scenario : study.scenarios("")) {
    const std::vector<PoolSize>& pools = scenario->pools;
    if (counts < 1 || pools.size() != static_cast<size_t>(counts) || pools[0].gpus != first ||
        scenario->objective != Objective::throughput || scenario->max_usd || scenario->min_iter_per_s ||
        !mentions(quantity, scenario->model))
      continue;
    if (counts == 2 && (pools[1].gpus != second || pools[1].zone != pools[0].zone)) continue;
    // Prefers a scenario on which other planners were run.
    const std::vector<Baseline> others = study.others(*scenario);
    if (std::any_of(others.begin(), others.end(), [&](const Baseline& one) {
          return one.planner != kPublishedPlanner && one.planner != kBestKnown;
        }))
      return scenario;
  }
  return nullptr;
}

// Table 1 or 2: seconds of every planner, as printed and from a new run.
void add_table(Study& study, Section& section, const std::string& where, const std::string& file,
               PublishedTable& published) {
  ResultTable table{file,
                    "Search seconds of " + where + ".",
                    {"scenario", "planner", "the paper, s", "rerun, CPU s", "ours is faster by"},
                    {}};
  for (const PublishedNumber& number : study.published(where)) {
    const Scenario* scenario = meant_by(study, number.quantity);
    if (scenario == nullptr) {
      published.add(number.quantity, number.value + " " + number.unit, "-", "no such scenario here");
      continue;
    }
    const double ours_s = study.plan(*scenario).search_cpu_s;
    table.add({scenario->name, "ours", "", figure(ours_s, 2), ""});
    std::vector<std::pair<std::string, std::string>> printed = named_values(number.note);
    const auto of = [&](const std::string& planner) -> std::string {
      for (const auto& [name, value] : printed)
        if (name == planner) return value;
      return "-";
    };
    std::set<std::string> shown;
    for (const Baseline& theirs : study.others(*scenario)) {
      if (!theirs.search_cpu_s) continue;
      const double ratio = ours_s > 0 ? *theirs.search_cpu_s / ours_s : 0;
      const bool is_published = theirs.planner == kPublishedPlanner;
      shown.insert(theirs.planner);
      table.add(
          {scenario->name, theirs.planner, is_published ? number.value : of(theirs.planner),
           figure(theirs.search_cpu_s, 3),
           ratio == 0 ? Cell("-", Mark::aside) : Cell(factor(ratio), ratio < 1 ? Mark::bad : Mark::good)});
    }
    for (const auto& [name, value] : printed)
      if (!shown.contains(name) && study.planners().contains(name))
        table.add({scenario->name, name, value, "-", {"-", Mark::aside}});
    if (!number.values().empty())
      published.add(number.quantity, number.values()[0], number.unit,
                    {{scenario->name, ours_s, scenario->ref_cpu_s}}, false);
  }
  section.show(std::move(table));
}

void add_table_3(Study& study, Section& section, PublishedTable& published) {
  std::vector<Scenario> scenarios;
  std::vector<RowResult> with;
  for (const Scenario* scenario : study.scenarios("brk-")) scenarios.push_back(*scenario);
  for (const Scenario& scenario : scenarios) with.push_back(study.plan(scenario));
  const RowRunner run = [&](const Scenario& scenario, const std::set<std::string>& without) {
    return study.plan_without(scenario, without);
  };
  ResultTable table{
      "table-3",
      fmt::format("Search seconds of table 3, with our own prunings (the paper's differ). \">\": stopped by "
                  "the limit of {:g} s per cell, or before it by the search's own limit of effort.",
                  study.options().cell_limit_s),
      {"cluster", "no pruning", "all", "all, and a budget", "the paper", "result of stopped searches"},
      {}};
  for (const PruningRow& row : measure_table_3(study.published_file(), scenarios, with, run)) {
    const std::string cluster = fmt::format("{} x {}, {}", row.types, row.gpus, row.model);
    const double part = row.bare.value > 0 ? row.all.value / row.bare.value : 0;
    table.add({cluster, search_seconds(row.bare), search_seconds(row.all),
               row.limited ? fmt::format("{} ({:g} USD)", search_seconds(*row.limited), row.max_usd) : "-",
               row.published,
               row.bare.ended ? "-"
               : part > 0     ? fmt::format("{:.0f} % of the throughput", 100 * part)
                              : "no plan"});
    // "hours / 0.25 / 0.4": the last two are numbers.
    const std::vector<double> values = PublishedNumber{"", "", row.published, "", ""}.values();
    if (values.size() != 2) continue;
    published.add("table 3, " + cluster + ", heuristics", values[0], "s",
                  {{"all prunings", row.all.search_cpu_s}}, false);
    if (row.limited)
      published.add("table 3, " + cluster + ", heuristics and a budget", values[1], "s",
                    {{"all prunings", row.limited->search_cpu_s}}, false);
  }
  section.show(std::move(table));
}

// The savings of each pruning, on the largest scenario of the breakdown without and with a budget.
void add_single_prunings(Study& study, Section& section) {
  std::vector<const Scenario*> scenarios;
  for (const Scenario* scenario : study.scenarios("brk-"))
    if (scenario->pools.size() > 1) scenarios.push_back(scenario);
  if (scenarios.empty()) return;
  ResultTable table{
      "prunings",
      fmt::format("Search seconds without one pruning at a time. \">\": stopped as above, at {:g} s at the "
                  "latest. The answer is the same where the search completed, unless the cell says "
                  "otherwise.",
                  study.options().cell_limit_s),
      {"without"},
      {}};
  BarChart chart;
  chart.title = "CPU seconds of a search without one pruning";
  chart.decades = true;
  chart.unit = fmt::format("seconds (stopped at {:g})", study.options().cell_limit_s);
  std::vector<Cell> all = {"(nothing)"};
  for (const Scenario* scenario : scenarios) {
    table.columns.push_back(scenario->name);
    const RowResult& ours = study.plan(*scenario);
    all.emplace_back(search_seconds(ours));
    chart.add("(nothing)", scenario->name, {std::max(kClock_s, ours.search_cpu_s)});
  }
  table.add(std::move(all));
  for (const std::string& name : feature_names()) {
    std::vector<Cell> row = {name};
    for (const Scenario* scenario : scenarios) {
      const RowResult without = study.plan_without(*scenario, {name});
      const RowResult& with = study.plan(*scenario);
      const bool same = std::abs(without.value - with.value) <= 1e-9 * with.value;
      const bool wrong = without.ended && with.ended && !same;
      row.emplace_back(search_seconds(without) + (wrong ? "; another answer" : ""),
                       wrong ? Mark::bad : Mark::plain);
      chart.add(name, scenario->name, {std::max(kClock_s, without.search_cpu_s), without.ended});
    }
    table.add(std::move(row));
  }
  section.show(std::move(table));
  section.show("prunings", chart.svg());
  section.say("Pale bars are searches that were stopped at the limit.");
}

}  // namespace

Section search_times(Study& study) {
  Section section{"tables-1-3", "Tables 1 to 3: search time", {}};
  section.say(
      "The paper's seconds were measured on its machine; the other planners were rerun for the data pack on "
      "one core of a shared machine. The published planner's seconds include its tables; ours are for the "
      "search only, and reading the inputs takes milliseconds.");
  PublishedTable published("search-times-published", "The paper's values for its own planner.");
  add_table(study, section, "table 1", "table-1", published);
  add_table(study, section, "table 2", "table-2", published);
  add_table_3(study, section, published);
  section.show(published.table());
  study.count(published);
  add_single_prunings(study, section);
  return section;
}

}  // namespace sailor::bench
