// Search time over GPUs, types and zones: see sections.h.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <tuple>

#include "tests/bench/evaluation/charts.h"
#include "tests/bench/evaluation/sections.h"

namespace sailor::bench {
namespace {

size_t num_zones(const Scenario& scenario) {
  std::set<std::string> zones;
  for (const PoolSize& pool : scenario.pools) zones.insert(pool.zone);
  return zones.size();
}

// A line per model and number of types (or, over zones, per model), ours and the published planner's.
class ScalingLines {
 public:
  ScalingLines(Study& study, bool with_published) : study_(study), with_published_(with_published) {}

  void add(const Scenario& scenario, const std::string& line, double at) {
    const auto [it, is_new] = colours_.emplace(line, colours_.size());
    const RowResult& ours = study_.plan(scenario);
    point(with_published_ ? line + ", ours" : line, it->second, false, at, ours.search_cpu_s);
    if (with_published_ && scenario.ref_cpu_s)
      point(line + ", published", it->second, true, at, *scenario.ref_cpu_s);
  }
  std::vector<LineSeries> lines() {
    for (LineSeries& one : lines_) std::sort(one.points.begin(), one.points.end());
    return lines_;
  }

 private:
  void point(const std::string& name, size_t colour, bool dashed, double at, double seconds) {
    auto it =
        std::find_if(lines_.begin(), lines_.end(), [&](const LineSeries& one) { return one.name == name; });
    if (it == lines_.end()) it = lines_.insert(it, {name, {}, dashed, colour});
    it->points.emplace_back(at, std::max(seconds, 1e-3));  // resolution of the clock
  }

  Study& study_;
  bool with_published_;
  std::map<std::string, size_t> colours_;
  std::vector<LineSeries> lines_;
};

void add_scaling_row(Study& study, ResultTable& table, const Scenario& scenario) {
  const RowResult& ours = study.plan(scenario);
  const bool theirs = scenario.ref.iter_per_s.has_value();
  const double ratio =
      scenario.ref_cpu_s && ours.search_cpu_s > 0 ? *scenario.ref_cpu_s / ours.search_cpu_s : 0;
  table.add({scenario.name, scenario.model, fmt::format("{}", scenario.pools.size() / num_zones(scenario)),
             fmt::format("{}", num_zones(scenario)), fmt::format("{}", scenario.pools[0].gpus),
             figure(ours.search_cpu_s, 2), ours.gap_pct ? per_cent(*ours.gap_pct) : "-",
             theirs                      ? figure(scenario.ref_cpu_s, 3)
             : scenario.ref_note.empty() ? "-"
                                         : scenario.ref_note,
             ratio == 0 ? Cell("-", Mark::aside) : Cell(factor(ratio), ratio < 1 ? Mark::bad : Mark::good)});
}

// The scenarios for "256 GPUs per type: 1 / 2 / 3 types" and "5 zones x 256 ... MODEL".
void add_published_scaling(Study& study, PublishedTable& table, const PublishedNumber& number,
                           const std::vector<const Scenario*>& by_gpus,
                           const std::vector<const Scenario*>& by_zones) {
  int gpus = 0, zones = 0;
  const std::vector<double> values = number.values();
  const auto seconds = [&](const std::vector<const Scenario*>& scenarios, auto is_meant) {
    std::vector<PublishedTable::Ours> ours;
    for (const Scenario* scenario : scenarios)
      if (is_meant(*scenario) && scenario->pools[0].gpus == gpus)
        ours.push_back({scenario->name, study.plan(*scenario).search_cpu_s, scenario->ref_cpu_s});
    return ours;
  };
  const auto add = [&](const std::string& what, double value, const std::vector<PublishedTable::Ours>& ours) {
    table.add(what, value, number.unit, ours, false);
  };
  if (std::sscanf(number.quantity.c_str(), "search time %d zones x %d", &zones, &gpus) == 2) {
    if (values.empty()) return;
    add(number.quantity, values[0], seconds(by_zones, [&](const Scenario& scenario) {
          return static_cast<int>(num_zones(scenario)) == zones && mentions(number.quantity, scenario.model);
        }));
  } else if (std::sscanf(number.quantity.c_str(), "search time %d GPUs per type", &gpus) == 1) {
    for (size_t types = 1; types <= values.size(); ++types)
      add(fmt::format("{}: {}", number.quantity, types), values[types - 1],
          seconds(by_gpus, [&](const Scenario& scenario) { return scenario.pools.size() == types; }));
  }
}

// By model, then pools, then GPUs.
void sort_by_size(std::vector<const Scenario*>& scenarios) {
  const auto key = [](const Scenario* one) {
    return std::tuple(one->model, one->pools.size(), one->pools[0].gpus);
  };
  std::stable_sort(scenarios.begin(), scenarios.end(),
                   [&](const Scenario* a, const Scenario* b) { return key(a) < key(b); });
}

}  // namespace

Section scaling(Study& study) {
  Section section{"scaling", "Scaling: GPUs, types, zones", {}};
  section.say(
      "CPU seconds of a search on one core. The published planner's include its tables. The gap is the "
      "maximum distance of our plan from the proven bound.");
  std::vector<const Scenario*> by_gpus = study.scenarios("scale-");
  std::vector<const Scenario*> by_zones = study.scenarios("zones");
  for (const Scenario* scenario : by_gpus)
    for (const Scenario* zoned : study.scenarios("zones"))
      if (scenario->pools.size() == 1 && scenario->model == zoned->model &&
          scenario->pools[0].gpus == zoned->pools[0].gpus &&
          std::find(by_zones.begin(), by_zones.end(), scenario) == by_zones.end())
        by_zones.push_back(scenario);

  sort_by_size(by_gpus);
  sort_by_size(by_zones);

  ResultTable table{"scaling-table",
                    "Search time and gap.",
                    {"scenario", "model", "types", "zones", "GPUs of each", "ours, CPU s", "gap, %",
                     "published, CPU s", "ours is faster by"},
                    {}};
  ScalingLines gpus(study, false), both(study, true), zones(study, false);
  for (const Scenario* scenario : by_gpus) {
    add_scaling_row(study, table, *scenario);
    const std::string line = fmt::format("{}, {} type{}", scenario->model, scenario->pools.size(),
                                         scenario->pools.size() == 1 ? "" : "s");
    gpus.add(*scenario, line, scenario->pools[0].gpus);
    both.add(*scenario, line, scenario->pools[0].gpus);
  }
  for (const Scenario* scenario : by_zones) {
    if (!scenario->name.starts_with("scale-")) add_scaling_row(study, table, *scenario);
    zones.add(*scenario, fmt::format("{}, {} per zone", scenario->model, scenario->pools[0].gpus),
              static_cast<double>(num_zones(*scenario)));
  }
  if (table.rows.empty()) section.say(kNotAskedFor);
  section.show(std::move(table));
  section.show("scaling-gpus", LogLogChart{"Search time over GPUs of each type, one zone",
                                           "GPUs of each type", "CPU seconds", gpus.lines()}
                                   .svg());
  section.show("scaling-zones",
               LogLogChart{"Search time over zones, one type", "zones", "CPU seconds", zones.lines()}.svg());
  section.show("scaling-published", LogLogChart{"Search time, ours and the published planner's",
                                                "GPUs of each type", "CPU seconds", both.lines()}
                                        .svg());
  PublishedTable published("scaling-published-figures", "Values in the paper.");
  for (const PublishedNumber& number : study.published("scalability"))
    add_published_scaling(study, published, number, by_gpus, by_zones);
  section.show(published.table());
  study.count(published);
  return section;
}

}  // namespace sailor::bench
