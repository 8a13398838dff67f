// Predictions against the measured runs that others published.
//
//   bench_validate --set NAME --data PATH [--reference DIR] [--fit OUT.json | --calibration IN.json]
//   bench_validate --set all --data DIR --reference DIR --svg FILE     every set, summaries only
//   bench_validate --set mfu    MFU of published runs, predicted without any measurement or calibration; exit
//   1 when
//                               a run like ours is more than 15 % off
//
// CSV on stdout, then lines that begin with `#`: the whole set, and where it has parts, each part; the second
// of a pair is about memory. Without --fit and --calibration the calibration of the set that is shipped
// (etc/calibration) is used. Exit 0 also when the data are not there ("skipped: no data").
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <map>

#include "planner/report/accuracy.h"
#include "planner/report/scatter_svg.h"
#include "planner/spec/error.h"
#include "planner/spec/text_file.h"
#include "tests/bench/calibration_recipe.h"
#include "tests/bench/published_runs.h"
#include "tests/bench/set_outcomes.h"
#include "tests/convert/convert.h"

namespace sailor::bench {
namespace {

namespace fs = std::filesystem;

const char* const kPublishedRuns = SAILOR_SOURCE_DIR "/tests/bench/published_runs.csv";

struct Options {
  std::string set, data, reference, fit, calibration, svg, emit;
  std::optional<size_t> tenth;
  bool leave_one_out = false, with_rows = true;
  std::string assumptions = SAILOR_SOURCE_DIR "/etc";
};

std::string number(const std::optional<double>& value, const char* format) {
  return value ? fmt::format(fmt::runtime(format), *value) : "";
}

void print_row(const RunOutcome& o) {
  const bool timed = o.predicted_s && o.measured_s, weighed = o.predicted_bytes && o.measured_bytes;
  fmt::print("{},{},{},{},{},{},{},{}\n", o.row, number(o.predicted_s, "{:.6g}"),
             number(o.measured_s, "{:.6g}"),
             timed ? fmt::format("{:.2f}", error_pct(*o.predicted_s, *o.measured_s)) : "",
             number(o.predicted_bytes, "{:.0f}"), number(o.measured_bytes, "{:.0f}"),
             weighed ? fmt::format("{:.2f}", error_pct(*o.predicted_bytes, *o.measured_bytes)) : "",
             o.fits ? "yes" : "no");
}

void print_summary(const std::string& name, const std::vector<Pair>& pairs, std::optional<double> gap) {
  if (pairs.empty()) return;
  const ErrorSummary e = summarize(pairs);
  fmt::print("# {} {} {:.2f} {:.2f} {:.2f} {:.2f} {} {}\n", name, e.n, e.mean_pct, e.median_pct, e.p95_pct,
             e.max_pct, rank_correlation(pairs) ? fmt::format("{:.3f}", *rank_correlation(pairs)) : "-",
             gap ? fmt::format("{:.2f}", *gap) : "-");
}

void print_both(const std::string& name, const std::vector<RunOutcome>& outcomes) {
  print_summary(name, time_pairs(outcomes), oracle_gap_pct(outcomes));
  print_summary(name + ":theirs", other_time_pairs(outcomes), std::nullopt);
  print_summary(name + ":memory", memory_pairs(outcomes), std::nullopt);
}

std::string spaceless(std::string text) {
  for (char& c : text)
    if (c == ' ') c = '_';
  return text;
}

// What a user of `sailor calibrate` gets.
int run_tenth(const Options& options, const std::vector<MeasuredRun>& records, const Assumptions& assumptions,
              const Predict& predict) {
  for (const CalibratedOnTenth& outcomes :
       calibrated_on_tenth(options.set, records, assumptions, predict, *options.tenth)) {
    for (const auto& [path, value] : outcomes.constants) fmt::print(stderr, "{} = {:.4g}\n", path, value);
    print_both(outcomes.framework + ":described", outcomes.described);
    print_both(outcomes.framework, outcomes.calibrated);
  }
  return kDone;
}

// One set; what is to be drawn goes to `drawn`.
int run_set(const Options& options, std::vector<ScatterSeries>& drawn) {
  if (!fs::exists(options.data)) {
    fmt::print(stderr, "skipped: no data ({})\n", options.data);
    return kDone;
  }
  const std::vector<MeasuredRun> records = convert::convert(options.set, options.data);
  if (!options.emit.empty()) {
    std::string lines;
    for (const MeasuredRun& record : records) lines += to_json(record) + "\n";
    write_file_atomically(options.emit, lines);
  }
  if (options.set == "sailor" && !fs::exists(options.reference)) {
    fmt::print(stderr, "skipped: no data (--reference {})\n", options.reference);
    return kDone;
  }
  const bool own = options.fit.empty() && options.calibration.empty();
  const Assumptions plain = load_assumptions(options.assumptions);
  Assumptions assumptions = calibrated(options.set, plain, options.assumptions, own);
  const Predict predict = predictor(options.set, options.reference, plain);
  if (!options.calibration.empty()) apply(load_calibration(options.calibration), assumptions);
  if (!options.fit.empty()) {
    const Calibration found =
        calibrate(options.set, fs::path(options.data).filename().string(), recipe_of(options.set),
                  scored(options.set, records), assumptions, predict);
    write_file_atomically(options.fit, to_json(found));
    apply(found, assumptions);
  }

  if (options.tenth) return run_tenth(options, records, plain, predict);
  const SetOutcomes outcomes = outcomes_of(options.set, records, assumptions, predict);
  const auto& parts = outcomes.parts;
  if (options.with_rows) fmt::print("row,pred_s,meas_s,err_pct,pred_bytes,meas_bytes,mem_err_pct,fits\n");
  for (const std::string& why : outcomes.refused) fmt::print(stderr, "no prediction: {}\n", why);
  if (options.with_rows)
    for (const RunOutcome& outcome : outcomes.as_measured) print_row(outcome);
  print_both(options.set, outcomes.all);
  for (const auto& [part, of_part] : parts) print_both(options.set + ":" + spaceless(part), of_part);
  print_summary(options.set + ":apart", time_pairs(outcomes.timed_apart), std::nullopt);
  if (options.leave_one_out)
    for (const auto& [part, of_part] : leave_one_out(options.set, records, assumptions, predict))
      print_both(options.set + ":" + part + ":leave-one-out", of_part);
  size_t too_large = 0;
  for (const RunOutcome& outcome : outcomes.all) too_large += outcome.ran && !outcome.fits ? 1 : 0;
  fmt::print("# {}:ran-but-called-too-large {}\n", options.set, too_large);
  if (parts.empty() || !options.with_rows) {
    drawn.push_back({options.set, time_pairs(outcomes.all)});
  } else {
    for (const auto& [part, of_part] : parts) drawn.push_back({part, time_pairs(of_part)});
  }
  return kDone;
}

// The files of the sets below the two directories of published data.
std::string file_of(const Options& options, const std::string& set) {
  static const std::map<std::string, std::string> files = {
      {"vtrain-single", "vtrain_ground_truth_single.csv"},
      {"vtrain-multi", "vtrain_ground_truth_multi.csv"},
      {"ultrascale", "ultrascale_playbook_bench.csv"},
      {"golden", "megatron_lm_golden_values.csv"},
      {"bigscience", "bigscience_megatron_deepspeed.csv"},
      {"amp", "amp_real_trials.csv"},
      {"mosaic", "mosaic_llmfoundry_mfu.csv"}};
  return set == "sailor" ? options.reference + "/validation_public" : options.data + "/" + files.at(set);
}

int run(const Options& options) {
  std::vector<ScatterSeries> drawn;
  if (options.set == "mfu")
    return print_mfu_table(load_published_runs(options.data.empty() ? kPublishedRuns : options.data),
                           load_assumptions(options.assumptions))
               ? kDone
               : kFailed;
  if (options.data.empty()) throw InputError("--set " + options.set + " needs --data");
  if (options.set != "all") {
    run_set(options, drawn);
  } else {
    for (const std::string& set : convert::set_names()) {
      Options one = options;
      one.set = set;
      one.data = file_of(options, set);
      one.with_rows = false;
      run_set(one, drawn);
    }
  }
  std::erase_if(drawn, [](const ScatterSeries& series) { return series.pairs.empty(); });
  if (!options.svg.empty())
    write_file_atomically(options.svg,
                          scatter_svg(options.set == "all" ? "Predicted against measured"
                                                           : options.set + ": predicted against measured",
                                      "s per iteration", drawn));
  return kDone;
}

}  // namespace
}  // namespace sailor::bench

int main(int argc, char** argv) {
  using namespace sailor;
  bench::Options options;
  CLI::App app{"Predictions against measured runs"};
  app.add_option("--set", options.set, "name of the data set")->required();
  app.add_option("--data", options.data, "its file or directory");
  app.add_option("--reference", options.reference, "the reference data pack (profiles of the set sailor)");
  auto* fit =
      app.add_option("--fit", options.fit, "calibrate on this data by the set's rule, write the constants");
  app.add_option("--calibration", options.calibration, "use these constants")->excludes(fit);
  app.add_option("--assumptions", options.assumptions,
                 "directory with catalog, platforms, frameworks, calibration");
  app.add_option(
         "--tenth", options.tenth,
         "calibrate as `sailor calibrate` does, on every tenth run from the K-th, 0 to 9; score the others")
      ->type_name("K")
      ->check(CLI::Range(0, 9))
      ->excludes(fit);
  app.add_flag("--leave-one-out", options.leave_one_out,
               "also predict every run with constants fitted to the others");
  app.add_option("--svg", options.svg, "draw predicted against measured");
  app.add_option("--emit", options.emit, "write the runs in the product's run format (JSON lines)");
  CLI11_PARSE(app, argc, argv);
  try {
    return bench::run(options);
  } catch (const InputError& error) {
    fmt::print(stderr, "bench_validate: {}\n", error.what());
    return kBadInput;
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_validate: {}\n", error.what());
    return kFailed;
  }
}
