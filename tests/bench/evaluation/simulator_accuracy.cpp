// Figures 5 and 6: see sections.h.
#include <fmt/format.h>

#include <filesystem>

#include "planner/report/scatter_svg.h"
#include "tests/bench/evaluation/sections.h"
#include "tests/bench/set_outcomes.h"
#include "tests/convert/convert.h"

namespace sailor::bench {
namespace {

constexpr const char* kMeasuredSet = "sailor";
constexpr const char* kPublishedSimulator = "Sailor";  // in simulators.csv

// The columns of simulators.csv. Each is the part of the set with this platform and model.
struct SimulatorColumn {
  const char* column;    // mean; the next two are median and largest
  const char* platform;  // of the part
  const char* model;     // prefix of its name; "" = any
  bool memory;
  const char* name;
  const char* figure;  // of paper_numbers.csv
};
constexpr SimulatorColumn kColumns[] = {
    {"opt350_gh200_time_mean_pct", "clariden", "OPT", false, "time, one type", "figure 5"},
    {"opt350_gh200_memory_mean_pct", "clariden", "OPT", true, "memory, one type", "figure 5"},
    {"mit_rtx_time_mean_pct", "mit", "", false, "time, three types", "figure 6"},
};

using Parts = std::map<std::string, std::vector<RunOutcome>>;

std::vector<Pair> pairs_of(const Parts& parts, const SimulatorColumn& column) {
  std::vector<RunOutcome> outcomes;
  for (const auto& [part, some] : parts)
    if (part.starts_with(std::string(column.platform) + "/" + column.model))
      outcomes.insert(outcomes.end(), some.begin(), some.end());
  return column.memory ? memory_pairs(outcomes) : time_pairs(outcomes);
}

std::string errors_text(const std::vector<Pair>& pairs) {
  if (pairs.empty()) return "-";
  const ErrorSummary e = summarize(pairs);
  return fmt::format("{:.1f} / {:.1f} / {:.1f}", e.mean_pct, e.median_pct, e.max_pct);
}

// All measured values by part, also those that the data's README excludes from scoring.
Parts by_part(const std::vector<MeasuredRun>& records, const std::vector<RunOutcome>& outcomes) {
  std::map<std::string, std::string> part_of_run;
  for (const MeasuredRun& record : records) part_of_run[record.name] = part_of(kMeasuredSet, record);
  Parts parts;
  for (const RunOutcome& outcome : outcomes) parts[part_of_run[outcome.row]].push_back(outcome);
  return parts;
}

// Mean difference of two measurements of one run: predictions cannot be more accurate.
std::optional<double> repeat_spread_pct(const std::vector<MeasuredRun>& records) {
  double sum = 0;
  int n = 0;
  for (const MeasuredRun& record : records) {
    if (record.iteration_s.size() != 2) continue;
    sum += std::abs(error_pct(record.iteration_s[1], record.iteration_s[0]));
    ++n;
  }
  return n > 0 ? std::optional(sum / n) : std::nullopt;
}

}  // namespace

Section simulator_accuracy(Study& study) {
  Section section{"figures-5-6", "Figures 5 and 6: accuracy of the simulators", {}};
  const std::string reference = study.options().reference, assumptions = study.options().assumptions;
  const std::vector<MeasuredRun> records = convert::convert(kMeasuredSet, reference + "/validation_public");
  const Assumptions plain = load_assumptions(assumptions);
  const Predict predict = predictor(kMeasuredSet, reference, plain);
  const Assumptions with = calibrated(kMeasuredSet, plain, assumptions);
  const SetOutcomes outcomes = outcomes_of(kMeasuredSet, records, with, predict);
  const Parts left_out = leave_one_out(kMeasuredSet, records, with, predict);
  const Parts unscored = by_part(records, outcomes.as_measured);

  section.say(
      fmt::format("{} published runs, predicted by our native model. It has four constants of the two "
                  "clusters, fitted to these "
                  "runs; \"left out\" predicts every run with constants fitted to all the others. The "
                  "figures of the others are "
                  "those of the data pack, over all runs of the authors, of which some are excluded here, so "
                  "theirs and ours do not cover the same runs.",
                  records.size()));
  if (const auto spread = repeat_spread_pct(records))
    section.say(fmt::format(
        "Two measurements of one run differ by {:.1f} % on average: smaller errors are not significant.",
        *spread));

  ResultTable table{"simulators", "Errors in per cent: mean / median / largest.", {"simulator"}, {}};
  for (const SimulatorColumn& column : kColumns) table.columns.push_back(column.name);
  const auto add_ours = [&](const std::string& name, const Parts& parts) {
    std::vector<Cell> row = {name};
    for (const SimulatorColumn& column : kColumns) row.emplace_back(errors_text(pairs_of(parts, column)));
    table.add(std::move(row));
  };
  add_ours("ours", outcomes.parts);
  add_ours("ours, each run left out of the fit", left_out);
  add_ours("ours, also the runs that the data's README says not to score", unscored);
  std::map<std::string, double> best, published_again;  // of the others, and of the paper's own, by column
  for (const CsvRow& csv : read_csv(reference + "/simulators.csv")) {
    std::vector<Cell> row = {csv.text("simulator")};
    for (const SimulatorColumn& column : kColumns) {
      // The columns after the mean have repeated names: only the mean can be identified.
      const auto mean = csv.number(column.column);
      row.emplace_back(mean ? figure(*mean, 3) + " (mean)" : "-");
      if (mean && csv.text("simulator") == kPublishedSimulator) published_again[column.column] = *mean;
      if (mean && (!best.contains(column.column) || *mean < best[column.column])) best[column.column] = *mean;
    }
    table.add(std::move(row));
  }
  section.show(std::move(table));

  ResultTable standing{"simulators-standing",
                       "The best of the others (mean error, all their runs) compared with ours, each "
                       "run left out of the fit.",
                       {"what", "best of the others, %", "ours, %", "standing"},
                       {}};
  for (const SimulatorColumn& column : kColumns) {
    const std::vector<Pair> pairs = pairs_of(left_out, column);
    if (pairs.empty() || !best.contains(column.column)) continue;
    const double ours = summarize(pairs).mean_pct;
    const bool better = ours <= best[column.column];
    standing.add({column.name,
                  figure(best[column.column], 3),
                  figure(ours, 3),
                  {better ? "ours is better" : "ours is worse", better ? Mark::good : Mark::bad}});
  }
  section.show(std::move(standing));

  std::vector<ScatterSeries> drawn;
  for (const auto& [part, some] : outcomes.parts) drawn.push_back({part, time_pairs(some)});
  section.show("predicted-measured", scatter_svg("Predicted against measured", "s per iteration", drawn));

  PublishedTable published("simulators-published", "The paper's values for its own simulator.");
  for (const char* where : {"figure 5", "figure 6"})
    for (const PublishedNumber& number : study.published(where)) {
      size_t value = 0;
      for (const SimulatorColumn& column : kColumns) {
        if (where != std::string(column.figure) || value >= number.values().size()) continue;
        const std::vector<Pair> pairs = pairs_of(left_out, column);
        std::vector<PublishedTable::Ours> ours;
        if (!pairs.empty()) {
          ours.push_back({"left out", summarize(pairs).mean_pct});
          if (const auto it = published_again.find(column.column); it != published_again.end())
            ours.back().published_again = it->second;
        }
        published.add(number.quantity + ": " + column.name, number.values()[value++], number.unit, ours,
                      false);
      }
    }
  section.show(published.table());
  study.count(published);

  const std::string suspect = reference + "/measured_suspect";
  if (std::filesystem::exists(suspect)) {
    ResultTable table_of_suspects{"simulators-suspect",
                                  "Inconsistent runs (see the data's README): "
                                  "shown, not counted.",
                                  {"run", "predicted, s", "measured, s", "error"},
                                  {}};
    const std::vector<MeasuredRun> runs = convert::convert(kMeasuredSet, suspect);
    const SetOutcomes some = outcomes_of(kMeasuredSet, runs, with, predict);
    for (const RunOutcome& one : some.as_measured)
      if (one.predicted_s && one.measured_s)
        table_of_suspects.add({one.row, figure(*one.predicted_s), figure(*one.measured_s),
                               fmt::format("{:+.1f} %", error_pct(*one.predicted_s, *one.measured_s))});
    section.show(std::move(table_of_suspects));
    for (const std::string& why : some.refused) section.say("No prediction of a suspect run: " + why);
  }
  return section;
}

}  // namespace sailor::bench
