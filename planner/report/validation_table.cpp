#include "planner/report/validation_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace sailor {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kWorst = 10;
constexpr size_t kMostModels = 25;
constexpr size_t kMostSeries = 8;

// The predicted runs of one model, or of all.
struct Part {
  std::string name;
  std::vector<RunOutcome> outcomes;
  size_t estimated = 0;

  void add(const ValidatedRun& run) {
    outcomes.push_back(run.outcome);
    estimated += run.estimated ? 1 : 0;
  }
};

// By model in the order of their appearance.
std::vector<Part> parts_of(const Validation& validation) {
  std::vector<Part> parts;
  for (const ValidatedRun& run : validation.runs) {
    if (!run.outcome.predicted_s) continue;
    auto part =
        std::find_if(parts.begin(), parts.end(), [&](const Part& p) { return p.name == run.outcome.model; });
    if (part == parts.end()) part = parts.insert(parts.end(), Part{run.outcome.model, {}, 0});
    part->add(run);
  }
  return parts;
}

Part whole_of(const Validation& validation) {
  Part whole{"all", {}, 0};
  for (const ValidatedRun& run : validation.runs)
    if (run.outcome.predicted_s) whole.add(run);
  return whole;
}

std::optional<double> time_error(const RunOutcome& o) {
  if (!o.predicted_s || !o.measured_s) return std::nullopt;
  return error_pct(*o.predicted_s, *o.measured_s);
}

std::optional<double> memory_error(const RunOutcome& o) {
  if (!o.predicted_bytes || !o.measured_bytes) return std::nullopt;
  return error_pct(*o.predicted_bytes, *o.measured_bytes);
}

std::string cell(const std::optional<double>& value, const char* format = "{:.1f}") {
  return value ? fmt::format(fmt::runtime(format), *value) : "-";
}

std::string gib(const std::optional<double>& bytes) {
  return bytes ? fmt::format("{:.2f}", *bytes / (1 << 30)) : "-";
}

std::string cut_to(std::string text, size_t width) {
  if (text.size() > width) text = text.substr(0, width - 2) + "..";
  return text;
}

void add_row(std::string& out, const std::string& name, const char* what, const std::vector<Pair>& pairs,
             const std::string& gap, const std::string& estimated) {
  if (pairs.empty()) return;
  const ErrorSummary e = summarize(pairs);
  out += fmt::format("{:<28} {:<7} {:>5} {:>7.2f} {:>8.2f} {:>7.2f} {:>7.2f} {:>6} {:>6} {:>9}\n",
                     cut_to(name, 28), what, e.n, e.mean_pct, e.median_pct, e.p95_pct, e.max_pct,
                     cell(rank_correlation(pairs), "{:.3f}"), gap, estimated);
}

void add_rows(std::string& out, const Part& part) {
  const std::string estimated = part.estimated == 0                      ? "-"
                                : part.estimated == part.outcomes.size() ? "all"
                                                                         : fmt::format("{}", part.estimated);
  add_row(out, part.name, "time", time_pairs(part.outcomes), cell(oracle_gap_pct(part.outcomes), "{:.2f}"),
          estimated);
  add_row(out, part.name, "  other", other_time_pairs(part.outcomes), "-", "-");
  add_row(out, part.name, "memory", memory_pairs(part.outcomes), "-", estimated);
}

// The larger of a run's two errors.
double distance(const RunOutcome& o) {
  return std::max(std::fabs(time_error(o).value_or(0)), std::fabs(memory_error(o).value_or(0)));
}

std::string worst_runs(const Validation& validation) {
  std::vector<const ValidatedRun*> scored;
  for (const ValidatedRun& run : validation.runs)
    if (run.outcome.ran && (time_error(run.outcome) || memory_error(run.outcome))) scored.push_back(&run);
  std::stable_sort(scored.begin(), scored.end(), [](const ValidatedRun* a, const ValidatedRun* b) {
    return distance(a->outcome) > distance(b->outcome);
  });
  if (scored.empty()) return "";
  if (scored.size() > kWorst) scored.resize(kWorst);
  std::string out = fmt::format("{:<28} {:<22} {:>9} {:>9} {:>7} {:>9} {:>9} {:>7}\n", "FARTHEST OFF",
                                "MODEL", "PRED (s)", "MEAS (s)", "ERR %", "PRED GiB", "MEAS GiB", "ERR %");
  for (const ValidatedRun* run : scored) {
    const RunOutcome& o = run->outcome;
    const char* mark = run->estimated ? "~" : "";
    out += fmt::format(
        "{:<28} {:<22} {:>9} {:>9} {:>7} {:>9} {:>9} {:>7}\n", cut_to(o.row, 28), cut_to(o.model, 22),
        mark + cell(o.predicted_s, "{:.4g}"), cell(o.measured_s, "{:.4g}"), cell(time_error(o), "{:+.1f}"),
        mark + gib(o.predicted_bytes), gib(o.measured_bytes), cell(memory_error(o), "{:+.1f}"));
  }
  return out;
}

Json number_or_null(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json summary_json(const std::vector<Pair>& pairs) {
  if (pairs.empty()) return nullptr;
  const ErrorSummary e = summarize(pairs);
  return {{"n", e.n},
          {"mean_pct", e.mean_pct},
          {"median_pct", e.median_pct},
          {"p95_pct", e.p95_pct},
          {"max_pct", e.max_pct},
          {"rank_correlation", number_or_null(rank_correlation(pairs))}};
}

Json part_json(const Part& part) {
  return {{"runs", part.outcomes.size()},
          {"estimated", part.estimated},
          {"time", summary_json(time_pairs(part.outcomes))},
          {"other_time", summary_json(other_time_pairs(part.outcomes))},
          {"memory", summary_json(memory_pairs(part.outcomes))},
          {"oracle_gap_pct", number_or_null(oracle_gap_pct(part.outcomes))}};
}

Json run_json(const ValidatedRun& run) {
  const RunOutcome& o = run.outcome;
  Json json = {{"run", o.row},
               {"file", run.where.file},
               {"line", run.where.line},
               {"model", o.model},
               {"group", o.group},
               {"status", o.ran ? "ok" : "failed"},
               {"measured_s", number_or_null(o.measured_s)},
               {"measured_bytes", number_or_null(o.measured_bytes)}};
  if (!o.predicted_s) {
    json["not_predicted"] = o.note;
    return json;
  }
  json["estimated"] = run.estimated;
  json["predicted_s"] = number_or_null(o.predicted_s);
  json["time_error_pct"] = number_or_null(time_error(o));
  json["predicted_bytes"] = number_or_null(o.predicted_bytes);
  json["memory_error_pct"] = number_or_null(memory_error(o));
  json["other_prediction_s"] = number_or_null(o.other_prediction_s);
  json["fits"] = o.fits;
  return json;
}

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

}  // namespace

size_t Validation::num_predicted() const {
  return static_cast<size_t>(std::count_if(
      runs.begin(), runs.end(), [](const ValidatedRun& run) { return run.outcome.predicted_s.has_value(); }));
}

std::string validation_table(const Validation& validation) {
  std::string out =
      fmt::format("{:<28} {:<7} {:>5} {:>7} {:>8} {:>7} {:>7} {:>6} {:>6} {:>9}\n", "MODEL", "OF", "N",
                  "MEAN %", "MEDIAN %", "95TH %", "MAX %", "RANK", "GAP %", "ESTIMATED");
  const std::vector<Part> parts = parts_of(validation);
  const Part whole = whole_of(validation);
  if (parts.size() > 1 && parts.size() <= kMostModels)
    for (const Part& part : parts) add_rows(out, part);
  add_rows(out, parts.size() == 1 ? parts[0] : whole);
  if (parts.size() > kMostModels) out += fmt::format("{} models: --format json has each\n", parts.size());
  const std::string worst = worst_runs(validation);
  if (!worst.empty()) out += "\n" + worst;

  size_t failed = 0, called_too_large = 0, too_large = 0;
  for (const RunOutcome& o : whole.outcomes) {
    failed += o.ran ? 0 : 1;
    called_too_large += !o.ran && !o.fits ? 1 : 0;
    too_large += o.ran && !o.fits ? 1 : 0;
  }
  out += fmt::format("\n{} of {} runs predicted", whole.outcomes.size(), validation.runs.size());
  if (failed > 0)
    out += fmt::format("; {} failed when run, {} of them predicted not to fit", failed, called_too_large);
  out += fmt::format("; {} ran though predicted not to fit\n", too_large);
  if (whole.estimated > 0)
    out +=
        "~ estimated: layer times come from the catalog and the shape of the model, not from a measured "
        "profile\n";
  return out;
}

std::string validation_json(const Validation& validation) {
  Json models = Json::array();
  for (const Part& part : parts_of(validation)) {
    Json json = {{"model", part.name}};
    json.update(part_json(part));
    models.push_back(std::move(json));
  }
  Json runs = Json::array();
  for (const ValidatedRun& run : validation.runs) runs.push_back(run_json(run));
  const Json out = {{"sailor_validation", 1},
                    {"dataset", validation.dataset},
                    {"calibrations", validation.calibrations},
                    {"all", part_json(whole_of(validation))},
                    {"models", std::move(models)},
                    {"runs", std::move(runs)}};
  return out.dump(2) + "\n";
}

std::string validation_csv(const Validation& validation) {
  std::string out = "run,model,pred_s,meas_s,err_pct,pred_bytes,meas_bytes,mem_err_pct,fits,estimated\n";
  const auto optional = [](const std::optional<double>& value, const char* format) {
    return value ? fmt::format(fmt::runtime(format), *value) : "";
  };
  for (const ValidatedRun& run : validation.runs) {
    const RunOutcome& o = run.outcome;
    if (!o.predicted_s) continue;
    out += fmt::format("{},{},{},{},{},{},{},{},{},{}\n", quoted(o.row), quoted(o.model),
                       optional(o.predicted_s, "{:.6g}"), optional(o.measured_s, "{:.6g}"),
                       optional(time_error(o), "{:.2f}"), optional(o.predicted_bytes, "{:.0f}"),
                       optional(o.measured_bytes, "{:.0f}"), optional(memory_error(o), "{:.2f}"),
                       o.fits ? "yes" : "no", run.estimated ? "yes" : "no");
  }
  return out;
}

std::vector<ScatterSeries> validation_scatter(const Validation& validation) {
  std::vector<ScatterSeries> series;
  for (const Part& part : parts_of(validation)) series.push_back({part.name, time_pairs(part.outcomes)});
  std::erase_if(series, [](const ScatterSeries& s) { return s.pairs.empty(); });
  if (series.size() <= kMostSeries) return series;
  std::stable_sort(series.begin(), series.end(), [](const ScatterSeries& a, const ScatterSeries& b) {
    return a.pairs.size() > b.pairs.size();
  });
  ScatterSeries rest{fmt::format("{} other models", series.size() - kMostSeries + 1), {}};
  for (size_t i = kMostSeries - 1; i < series.size(); ++i)
    rest.pairs.insert(rest.pairs.end(), series[i].pairs.begin(), series[i].pairs.end());
  series.resize(kMostSeries - 1);
  series.push_back(std::move(rest));
  return series;
}

}  // namespace sailor
