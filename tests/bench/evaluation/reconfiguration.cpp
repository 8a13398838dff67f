// Reconfiguration: see sections.h.
#include <fmt/format.h>

#include <algorithm>

#include "planner/report/accuracy.h"
#include "tests/bench/evaluation/sections.h"
#include "tests/bench/replan.h"

namespace sailor::bench {
namespace {

// The planner's part: a node joins or leaves.
std::vector<PublishedTable::Ours> add_planning(Study& study, Section& section, const Scenario& scenario) {
  ReplanOptions options;
  options.time_limit_s = study.options().time_limit_s;
  options.again_time_limit_s = options.time_limit_s;
  const Inputs inputs = study.inputs(scenario);
  options.part = 1.0 / static_cast<double>(inputs.snapshot.nodes.size());
  ResultTable table{
      "reconfiguration-planning",
      fmt::format("One of {} nodes with {} joins or leaves; replanned from the previous plans (wall time).",
                  inputs.snapshot.nodes.size(), scenario.pools[0].gpu_type),
      {"cost model", "what happens", "replanned, ms", "planned from scratch, ms",
       "replanned over from scratch", "previous plan", "new plan"},
      {}};
  std::vector<PublishedTable::Ours> seconds;
  for (const CostModel model : {CostModel::published, CostModel::native})
    for (const Replan& event : replan(inputs, model, options).events) {
      const double ratio = event.from_nothing > 0 ? event.again / event.from_nothing : 0;
      table.add({to_string(model),
                 event.event == "gain" ? "a node joins" : "a node leaves",
                 figure(event.again_ms, 3),
                 figure(event.from_nothing_ms, 3),
                 {figure(ratio, 5), ratio > 1 + 1e-9 ? Mark::bad : Mark::plain},
                 event.before_plan,
                 event.plan});
      if (event.event == "gain")
        seconds.push_back({fmt::format("{} model", to_string(model)), event.again_ms / 1000});
    }
  section.show(std::move(table));
  return seconds;
}

// The phases of every fault that tests/chaos.sh measured.
std::vector<PublishedTable::Ours> add_phases(const std::string& path, Section& section) {
  static const std::vector<std::pair<const char*, const char*>> phases = {
      {"detect_s", "detection by the controller"},
      {"plan_s", "planning"},
      {"groups_s", "new communicators"},
      {"state_s", "moving the state"},
      {"resume_s", "from the fault to the next step"}};
  ResultTable table{"reconfiguration-phases",
                    "Measured reconfigurations: seconds per phase.",
                    {"phase", "n", "median", "95th percentile", "largest"},
                    {}};
  std::vector<PublishedTable::Ours> all;
  const std::vector<CsvRow> rows = read_csv(path);
  for (const auto& [column, what] : phases) {
    std::vector<double> seconds;
    for (const CsvRow& row : rows)
      if (const auto value = row.number(column)) seconds.push_back(*value);
    if (seconds.empty()) continue;
    table.add({what, fmt::format("{}", seconds.size()), figure(quantile(seconds, 0.5), 3),
               figure(quantile(seconds, 0.95), 3), figure(quantile(seconds, 1), 3)});
    if (std::string(column) == "resume_s") all.push_back({"median", quantile(seconds, 0.5)});
  }
  section.show(std::move(table));
  return all;
}

}  // namespace

Section reconfiguration(Study& study) {
  Section section{"reconfiguration", "Reconfiguration", {}};
  PublishedTable published("reconfiguration-published", "Values in the paper.");
  std::vector<PublishedTable::Ours> planning, whole;
  if (const Scenario* scenario = study.scenario("reconfiguration"))
    planning = add_planning(study, section, *scenario);
  const std::string& measured = study.options().reconfiguration;
  if (measured.empty()) {
    section.say(
        "Only the planner's part: no measured reconfigurations were given (--reconfiguration, the file that "
        "tests/chaos.sh writes).");
  } else {
    whole = add_phases(measured, section);
    section.say(
        "The phases were measured on ranks of one machine that compute on its processors: not the paper's "
        "cluster.");
  }
  for (const PublishedNumber& number : study.published("reconfiguration")) {
    const std::vector<double> values = number.values();
    if (values.empty()) continue;
    published.add(number.quantity + ": planning", values[0], number.unit, planning, false);
    double sum = 0;
    for (double value : values) sum += value;
    published.add_uncounted(number.quantity + ": total", sum, number.unit, whole,
                            whole.empty() ? "not measured here" : "not counted: other hardware and model");
  }
  section.show(published.table());
  study.count(published);
  return section;
}

}  // namespace sailor::bench
