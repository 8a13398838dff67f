// Plans every scenario of a file under the published cost model and search space, and holds the result
// against what is known.
//
//   bench_planner --scenarios F.csv --reference DIR [--row NAME] [--without FEATURE|all] [--emit-plans DIR]
//   bench_planner --scenarios F.csv --reference DIR --prunings
//   bench_planner --scenarios F.csv --reference DIR --gains [--memory PART]     paper against full, native
//   model bench_planner --scenarios F.csv --reference DIR --replan [--cost-model M] [--lose PART] [--seed S]
//   bench_planner --generate SEED --types N --zones N --gpus N
//   bench_planner --native --seed S --count N ...       the native search against rivals
//   (native/native_bench.h)
//   bench_planner --native --adjacent --seed S --count N ...       clusters with a node less
//   (native/adjacent_clusters.h)
//   bench_planner --native --gains --seed S --count N ...       what each feature of plans brings
//   (native/feature_gains.h)
//
// CSV on stdout; what is wrong with a row, and a summary, on stderr. Every row is a process of its own.
// Exit 1 when a row is invalid, worse than the best plan known or than a plan of DIR/baselines.csv, or when a
// known plan beats a bound; 0 when the data are not there. --gains: when a wider space has a worse plan;
// --replan: when planning again does.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "planner/search/search.h"
#include "planner/spec/error.h"
#include "tests/bench/gains.h"
#include "tests/bench/native/adjacent_clusters.h"
#include "tests/bench/native/feature_gains.h"
#include "tests/bench/native/native_bench.h"
#include "tests/bench/prunings.h"
#include "tests/bench/replan.h"
#include "tests/bench/row.h"

namespace sailor::bench {
namespace {

const std::map<std::string, Rivals> kRivals{
    {"none", Rivals::none}, {"fast", Rivals::fast}, {"all", Rivals::all}, {"hard", Rivals::hard}};

struct Options {
  std::string scenarios, reference, row;
  RowOptions of_row;
  std::vector<std::string> without;
  bool prunings = false, gains = false, replan = false;
  double memory = 1;
  std::string cost_model;  // of replan; empty = both
  ReplanOptions of_replan;
  std::optional<double> again_time_limit_s;
  int only = -1;  // this row, by its place in the file; for the processes that this one starts
  int64_t generate = -1;
  int types = 5, zones = 5, gpus = 1024;
  bool native = false, adjacent = false;
  NativeOptions of_native;
};

// What the project asks of speed and memory. Said, not enforced: the machine decides too.
constexpr double kFastEnough_s = 0.05;
constexpr double kMost_s = 1, kMostGenerated_s = 10;
constexpr double kMostRss_mb = 200;
constexpr double kSmallGap_pct = 2;

double limit_s(const Scenario& scenario) {
  return scenario.ref_cpu_s ? std::min(kMost_s, std::max(kFastEnough_s, *scenario.ref_cpu_s / 10)) : kMost_s;
}

// Says what is slow or large; counts rows that are neither.
class Limits {
 public:
  void check(const RowResult& row, double limit_s) {
    ++rows_;
    const bool slow = row.total_cpu_s > limit_s, large = row.rss_mb > kMostRss_mb;
    if (slow)
      fmt::print(stderr, "{}: {:.3f} s of CPU, more than {:.3f} s\n", row.name, row.total_cpu_s, limit_s);
    if (large) fmt::print(stderr, "{}: {:.0f} MB, more than {:.0f} MB\n", row.name, row.rss_mb, kMostRss_mb);
    within_ += !slow && !large;
    if (row.gap_pct) {
      ++gaps_;
      small_gaps_ += *row.gap_pct <= kSmallGap_pct;
    }
    beaten_ += row.beaten;
    compared_ += row.compared;
    noted_ += row.noted;
    total_cpu_s_ += row.total_cpu_s;
    slowest_s_ = std::max(slowest_s_, row.total_cpu_s);
  }
  void print() const {
    fmt::print(stderr,
               "# {} of {} rows within their limits of time and memory; {:.3f} s of CPU, slowest {:.3f} s\n",
               within_, rows_, total_cpu_s_, slowest_s_);
    fmt::print(stderr, "# gap at most {} % on {} of {} rows with a plan and a bound\n", kSmallGap_pct,
               small_gaps_, gaps_);
    fmt::print(stderr, "# {} of {} baselines reached or beaten ({} more have a note and do not count)\n",
               beaten_, compared_, noted_);
  }

 private:
  int rows_ = 0, within_ = 0, gaps_ = 0, small_gaps_ = 0, beaten_ = 0, compared_ = 0, noted_ = 0;
  double total_cpu_s_ = 0, slowest_s_ = 0;
};

void print_header() {
  fmt::print("{}\n", RowResult::header());
}

void print_row(const RowResult& row) {
  fmt::print("{}\n", row.csv());
  std::fflush(stdout);
}

int run_generated(const Options& options) {
  fmt::print(stderr, "seed {}\n", options.generate);
  Scenario scenario;
  scenario.name =
      fmt::format("generated-{}-{}x{}x{}", options.generate, options.types, options.zones, options.gpus);
  const Inputs inputs =
      generate_inputs(static_cast<uint64_t>(options.generate), options.types, options.zones, options.gpus);
  const RowResult row = run_row(scenario, inputs, {}, options.of_row);
  print_header();
  print_row(row);
  Limits limits;
  limits.check(row, kMostGenerated_s);
  limits.print();
  return row.passed ? kDone : kFailed;
}

RowResult run_here(const Scenario& scenario, const Options& options) {
  const ReferenceData reference(options.reference);
  return run_row(scenario, reference.inputs(scenario), load_baselines(options.reference + "/baselines.csv"),
                 options.of_row);
}

RowResult run_there(int index, const Options& options, const std::set<std::string>& without, bool quiet) {
  std::vector<std::string> arguments = {
      "--scenarios", options.scenarios,     "--reference",  options.reference,
      "--only",      std::to_string(index), "--time-limit", fmt::format("{}", options.of_row.time_limit_s)};
  for (const std::string& feature : without) arguments.insert(arguments.end(), {"--without", feature});
  if (quiet) arguments.push_back("--quiet");
  if (!quiet && !options.of_row.emit_plans.empty())
    arguments.insert(arguments.end(), {"--emit-plans", options.of_row.emit_plans});
  return run_row_in_a_process(arguments);
}

int run_scenarios(const Options& options) {
  if (!std::filesystem::exists(options.scenarios) || !std::filesystem::exists(options.reference)) {
    print_header();
    fmt::print(stderr, "skipped: no data ({} or {} is not there)\n", options.scenarios, options.reference);
    return kDone;
  }
  const std::vector<Scenario> file = load_scenarios(options.scenarios);
  if (options.only >= 0) {
    const RowResult row = run_here(file.at(static_cast<size_t>(options.only)), options);
    fmt::print("{}\n", row.record());
    return kDone;
  }
  print_header();
  std::vector<Scenario> scenarios;
  std::vector<int> places;
  for (size_t i = 0; i < file.size(); ++i) {
    if (!options.row.empty() && options.row != file[i].name) continue;
    scenarios.push_back(file[i]);
    places.push_back(static_cast<int>(i));
  }
  if (scenarios.empty())
    throw InputError({options.scenarios, 0}, "no row \"" + options.row + "\" in this file");

  std::vector<RowResult> rows;
  Limits limits;
  int failed = 0;
  for (size_t i = 0; i < scenarios.size(); ++i) {
    // A single row needs no process besides this one, which a profiler looks at more easily.
    rows.push_back(scenarios.size() == 1 ? run_here(scenarios[i], options)
                                         : run_there(places[i], options, options.of_row.without, false));
    print_row(rows.back());
    limits.check(rows.back(), limit_s(scenarios[i]));
    failed += !rows.back().passed;
  }
  limits.print();
  fmt::print(stderr, "# {} rows, {} failed\n", rows.size(), failed);
  if (options.prunings) {
    const auto print = [](const std::string& line) { fmt::print(stderr, "{}\n", line); };
    const auto run = [&](const Scenario& scenario, const std::set<std::string>& without) {
      const auto at = std::find_if(scenarios.begin(), scenarios.end(),
                                   [&](const Scenario& s) { return &s == &scenario; });
      return run_there(places[static_cast<size_t>(at - scenarios.begin())], options, without, true);
    };
    if (!print_prunings(scenarios, rows, run, print)) ++failed;
    print_table_3(measure_table_3(options.reference + "/paper_numbers.csv", scenarios, rows, run), print);
  }
  return failed == 0 ? kDone : kFailed;
}

// Calls `visit` for the requested scenarios of the file, all in this process.
template <typename Visit>
int visit_scenarios(const Options& options, const std::string& header, Visit visit) {
  fmt::print("{}\n", header);
  if (!std::filesystem::exists(options.scenarios) || !std::filesystem::exists(options.reference)) {
    fmt::print(stderr, "skipped: no data ({} or {} is not there)\n", options.scenarios, options.reference);
    return kDone;
  }
  const ReferenceData reference(options.reference);
  int failed = 0;
  for (const Scenario& scenario : load_scenarios(options.scenarios)) {
    if (!options.row.empty() && options.row != scenario.name) continue;
    failed += !visit(scenario, reference.inputs(scenario));
    std::fflush(stdout);
  }
  return failed == 0 ? kDone : kFailed;
}

int run_gains(const Options& options) {
  return visit_scenarios(options, gains_header(), [&](const Scenario& scenario, const Inputs& inputs) {
    if (!is_mixed(scenario)) return true;
    const Gains gains = gains_of(scenario, inputs, {options.of_row.time_limit_s, options.memory});
    fmt::print("{}\n", gains.csv);
    if (!gains.monotone) fmt::print(stderr, "{}: a wider space has a worse plan\n", scenario.name);
    return gains.monotone;
  });
}

int run_replan(const Options& options) {
  double slowest_ms = 0;
  fmt::print(stderr, "seed {}\n", options.of_replan.seed);
  const int code =
      visit_scenarios(options, replan_header(), [&](const Scenario& scenario, const Inputs& inputs) {
        bool good = true;
        for (CostModel model : {CostModel::published, CostModel::native}) {
          if (!options.cost_model.empty() && parse_cost_model(options.cost_model) != model) continue;
          ReplanOptions of_replan = options.of_replan;
          of_replan.time_limit_s = options.of_row.time_limit_s;
          of_replan.again_time_limit_s = options.again_time_limit_s.value_or(of_replan.time_limit_s);
          const Replans replans = replan(inputs, model, of_replan);
          for (const Replan& event : replans.events) fmt::print("{}\n", event.csv(scenario, model));
          slowest_ms = std::max(slowest_ms, replans.slowest_ms);
          good = good && !replans.worse;
        }
        return good;
      });
  fmt::print(stderr, "# slowest {:.1f} ms\n", slowest_ms);
  return code;
}

int run(Options options) {
  if (options.native && options.gains) return run_feature_gains(options.of_native);
  if (options.native)
    return options.adjacent ? run_adjacent(options.of_native) : run_native(options.of_native);
  if (options.gains) return run_gains(options);
  if (options.replan) return run_replan(options);
  for (const std::string& feature : options.without) {
    if (feature != "all") {
      options.of_row.without.insert(feature);
      continue;
    }
    const std::vector<std::string> all = feature_names();
    options.of_row.without.insert(all.begin(), all.end());
  }
  return options.generate >= 0 ? run_generated(options) : run_scenarios(options);
}

// Options that --native shares with others, whose defaults differ.
void set_native(const CLI::App& app, const std::string& rivals, const std::string& catalog,
                Options& options) {
  NativeOptions& native = options.of_native;
  native.seed = options.of_replan.seed;
  native.only = options.only;
  native.rivals = kRivals.at(rivals);
  native.catalog = catalog;
  if (app.count("--gpus") > 0) native.limits.gpus = options.gpus;
  if (app.count("--types") > 0) native.limits.types = options.types;
  if (app.count("--zones") > 0) native.limits.zones = options.zones;
  if (app.count("--time-limit") > 0) native.effort.time_limit_s = options.of_row.time_limit_s;
  if (native.limits.gpus < 8) throw CLI::ValidationError("--gpus", "must be at least 8");
  if (!native.dump.empty() && native.only < 0) throw CLI::ValidationError("--dump", "needs --only NUMBER");
}

}  // namespace
}  // namespace sailor::bench

int main(int argc, char** argv) {
  using namespace sailor;
  bench::Options options;
  std::vector<std::string> features = feature_names();
  features.push_back("all");
  CLI::App app{"Plans the scenarios of a file and compares with the best plans known"};
  app.add_option("--scenarios", options.scenarios, "CSV file with the columns of reference/targets.csv");
  app.add_option("--reference", options.reference, "directory of the reference data pack");
  app.add_option("--row", options.row, "only this scenario");
  app.add_option("--without", options.without, "switch a pruning off, or all of them")
      ->check(CLI::IsMember(features));
  app.add_flag("--prunings", options.prunings,
               "say what each pruning saves (plans every row again without it)");
  app.add_flag(
      "--gains", options.gains,
      "say what the full space gains over the paper's, by feature; with --native what each feature gains");
  app.add_option("--memory", options.memory, "part of every GPU's memory that there is, for --gains")
      ->check(CLI::PositiveNumber);
  app.add_flag("--replan", options.replan, "plan again after losing and after gaining nodes");
  app.add_option("--cost-model", options.cost_model, "only this one, for --replan")
      ->check(CLI::IsMember({"native", "published"}));
  app.add_option("--effort", options.of_native.search_effort,
                 "of the native search, as a multiple of its own")
      ->check(CLI::PositiveNumber);
  app.add_option("--lose", options.of_replan.part, "part of the nodes that come or go, for --replan")
      ->check(CLI::Range(0.0, 0.9));
  app.add_option("--again-time-limit", options.again_time_limit_s, "seconds to plan again, for --replan")
      ->check(CLI::PositiveNumber);
  app.add_option("--candidates", options.of_replan.candidates, "previous plans to replan from, for --replan")
      ->check(CLI::PositiveNumber);
  app.add_option("--seed", options.of_replan.seed, "which nodes, for --replan");
  app.add_option("--emit-plans", options.of_row.emit_plans, "write every plan as DIR/SCENARIO.json");
  app.add_option("--only", options.only)->group("");  // hidden: for the processes that this one starts
  app.add_flag("--quiet", options.of_row.quiet)->group("");
  app.add_option("--generate", options.generate, "seed of a synthetic cluster instead of a file")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--types", options.types, "GPU types of the synthetic cluster")->check(CLI::Range(1, 64));
  app.add_option("--zones", options.zones, "zones of the synthetic cluster")->check(CLI::Range(1, 26));
  app.add_option("--gpus", options.gpus, "GPUs per type and zone of the synthetic cluster")
      ->check(CLI::Range(1, 100000));
  app.add_option("--time-limit", options.of_row.time_limit_s, "seconds per row")->check(CLI::PositiveNumber);
  app.add_flag("--native", options.native, "hold the native search against rivals on random problems");
  app.add_option("--count", options.of_native.count, "problems, for --native")->check(CLI::PositiveNumber);
  std::string rivals = "all", catalog = SAILOR_SOURCE_DIR "/etc/catalog.yaml";
  app.add_option("--rivals", rivals, "which, for --native")
      ->check(CLI::IsMember({"none", "fast", "all", "hard"}));
  app.add_flag("--adjacent", options.adjacent,
               "compare clusters that differ by a node or a type, for --native");
  std::string links = "drawn";
  app.add_option("--links", links, "between nodes, for --native")->check(CLI::IsMember({"drawn", "catalog"}));
  app.add_option("--catalog", catalog, "GPU types, for --native")->check(CLI::ExistingFile);
  app.add_option("--dump", options.of_native.dump,
                 "with --native and --only NUMBER: write the problem and the plans there");
  try {
    app.parse(argc, argv);
    options.of_native.limits.drawn_links = links == "drawn";
    if (options.native) set_native(app, rivals, catalog, options);
    if (!options.native && options.generate < 0 && (options.scenarios.empty() || options.reference.empty()))
      throw CLI::RequiredError("--scenarios and --reference, or --generate, or --native");
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? kDone : kBadInput;
  }
  try {
    return bench::run(options);
  } catch (const InputError& e) {
    fmt::print(stderr, "sailor: {}\n", e.what());
    return kBadInput;
  } catch (const std::exception& e) {
    fmt::print(stderr, "sailor: {}\n", e.what());
    return kFailed;
  }
}
