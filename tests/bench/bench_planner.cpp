// Plans every scenario of a file under the published cost model and search space, and holds the result
// against what is known.
//
//   bench_planner --scenarios F.csv --reference DIR [--row NAME] [--without FEATURE] [--emit-plans DIR]
//   bench_planner --generate SEED --types N --zones N --gpus N
//
// CSV on stdout, a summary on stderr; exit 1 when a row is invalid or worse than the best plan known, 0 when
// the data are not there.
#include <fmt/format.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "planner/plan/plan_json.h"
#include "planner/plan/validate.h"
#include "planner/search/search.h"
#include "planner/spec/error.h"
#include "tests/bench/reference_data.h"
#include "tests/bench/scenario.h"

namespace sailor::bench {
namespace {

constexpr double kTolerance = 5e-5;  // relative, when plans are compared

struct Options {
  std::string scenarios, reference, row, emit_plans;
  std::vector<std::string> without;
  int64_t generate = -1;
  int types = 5, zones = 5, gpus = 1024;
  double time_limit_s = 10;
};

double cpu_s() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

double rss_mb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

// At least as good as what the file says was reached, within the tolerance?
bool as_good(const Scenario& scenario, const Reached& reached, const SearchResult& result) {
  const bool found = !result.candidates.empty();
  if (reached.none) return result.status == SearchStatus::infeasible;
  if (scenario.objective == Objective::throughput) {
    if (!reached.iter_per_s) return true;
    return found &&
           result.candidates[0].prediction.iterations_per_s() >= *reached.iter_per_s * (1 - kTolerance);
  }
  if (!reached.usd_per_iter) return true;
  return found &&
         result.candidates[0].prediction.usd_per_iteration() <= *reached.usd_per_iter * (1 + kTolerance);
}

// Every violation of the rules by the plan that is returned.
std::vector<std::string> violations(const Scenario& scenario, const Inputs& inputs, const Candidate& best) {
  std::vector<std::string> out = check_plan(best.plan, inputs.snapshot);
  const Prediction again = simulate(inputs.context(), best.plan, CostModel::published);
  if (!again.fits) out.push_back("a stage does not fit its GPU");
  if (scenario.max_usd && again.usd_per_iteration() > *scenario.max_usd) out.push_back("over budget");
  if (scenario.min_iter_per_s && again.iterations_per_s() < *scenario.min_iter_per_s)
    out.push_back("too slow");
  if (std::abs(again.iteration_s - best.prediction.iteration_s) > 1e-9 * again.iteration_s)
    out.push_back("prediction differs");
  for (const PlanPipeline& pipeline : best.plan.pipelines) {
    int next = 0;
    for (const PlanStage& stage : pipeline.stages) {
      if (stage.first_layer != next || stage.end_layer <= next) out.push_back("layers not covered in order");
      next = stage.end_layer;
    }
    if (next != inputs.job.model.num_all_layers()) out.push_back("layers missing");
  }
  return out;
}

// Plans one scenario, prints its row, and says whether it passed.
bool run_row(const Scenario& scenario, const Inputs& inputs, double started_cpu_s, const Options& options) {
  PlanOptions plan_options;
  plan_options.space = SearchSpace::paper;
  plan_options.cost_model = CostModel::published;
  plan_options.top_k = 1;
  plan_options.time_limit_s = options.time_limit_s;
  plan_options.without.insert(options.without.begin(), options.without.end());
  plan_options.explain = false;
  const double search_started = cpu_s();
  const SearchResult result = search(inputs.context(), plan_options);
  const double search_cpu_s = cpu_s() - search_started;

  const bool cost = scenario.objective == Objective::cost;
  const std::optional<double> bound = cost ? result.bound_usd_per_iteration : result.bound_iteration_s;
  std::string status = "none", figures = ",", gap;
  bool valid = true;
  if (!result.candidates.empty()) {
    const Candidate& best = result.candidates.front();
    const std::vector<std::string> wrong = violations(scenario, inputs, best);
    for (const std::string& text : wrong) fmt::print(stderr, "{}: {}\n", scenario.name, text);
    valid = wrong.empty();
    status = valid ? (result.stats.complete ? "found" : "stopped") : "invalid";
    figures =
        fmt::format("{:.6f},{:.5f}", best.prediction.iterations_per_s(), best.prediction.usd_per_iteration());
    const double value = cost ? best.prediction.usd_per_iteration() : best.prediction.iteration_s;
    if (bound) gap = fmt::format("{:.2f}", 100 * (value / *bound - 1));
    if (!options.emit_plans.empty()) {
      std::filesystem::create_directories(options.emit_plans);
      std::ofstream(options.emit_plans + "/" + scenario.name + ".json") << to_json(best.plan) << "\n";
    }
  } else if (result.status == SearchStatus::time_limit) {
    status = "time_limit";
  }
  const bool ref_ok = as_good(scenario, scenario.ref, result),
             known_ok = as_good(scenario, scenario.known, result);
  // The bound is printed in the row's own terms: iterations per second or USD.
  const std::string bound_text = !bound ? "" : fmt::format("{:.6f}", cost ? *bound : 1 / *bound);
  fmt::print("{},{},{},{},{},{:.3f},{:.3f},{:.0f},{},{}\n", scenario.name, status, figures, bound_text, gap,
             search_cpu_s, cpu_s() - started_cpu_s, rss_mb(), ref_ok ? 1 : 0, known_ok ? 1 : 0);
  std::fflush(stdout);
  return valid && known_ok;
}

int run(const Options& options) {
  fmt::print(
      "scenario,status,iter_per_s,usd_per_iter,bound,gap_pct,search_cpu_s,total_cpu_s,rss_mb,ref_ok,known_"
      "ok\n");
  if (options.generate >= 0) {
    const double started = cpu_s();
    fmt::print(stderr, "seed {}\n", options.generate);
    Scenario scenario;
    scenario.name =
        fmt::format("generated-{}-{}x{}x{}", options.generate, options.types, options.zones, options.gpus);
    const Inputs inputs =
        generate_inputs(static_cast<uint64_t>(options.generate), options.types, options.zones, options.gpus);
    return run_row(scenario, inputs, started, options) ? kDone : kFailed;
  }
  if (!std::filesystem::exists(options.scenarios) || !std::filesystem::exists(options.reference)) {
    fmt::print(stderr, "skipped: no data ({} or {} is not there)\n", options.scenarios, options.reference);
    return kDone;
  }
  const ReferenceData reference(options.reference);
  int rows = 0, failed = 0;
  for (const Scenario& scenario : load_scenarios(options.scenarios)) {
    if (!options.row.empty() && options.row != scenario.name) continue;
    ++rows;
    const double started = cpu_s();
    const Inputs inputs = reference.inputs(scenario);
    if (!run_row(scenario, inputs, started, options)) ++failed;
  }
  fmt::print(stderr, "# {} rows, {} failed\n", rows, failed);
  if (rows == 0) throw InputError({options.scenarios, 0}, "no row \"" + options.row + "\" in this file");
  return failed == 0 ? kDone : kFailed;
}

}  // namespace
}  // namespace sailor::bench

int main(int argc, char** argv) {
  using namespace sailor;
  bench::Options options;
  CLI::App app{"Plans the scenarios of a file and compares with the best plans known"};
  app.add_option("--scenarios", options.scenarios, "CSV file with the columns of reference/targets.csv");
  app.add_option("--reference", options.reference, "directory of the reference data pack");
  app.add_option("--row", options.row, "only this scenario");
  app.add_option("--without", options.without, "switch a pruning off")->check(CLI::IsMember(feature_names()));
  app.add_option("--emit-plans", options.emit_plans, "write every plan as DIR/SCENARIO.json");
  app.add_option("--generate", options.generate, "seed of a synthetic cluster instead of a file")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--types", options.types, "GPU types of the synthetic cluster")->check(CLI::Range(1, 64));
  app.add_option("--zones", options.zones, "zones of the synthetic cluster")->check(CLI::Range(1, 26));
  app.add_option("--gpus", options.gpus, "GPUs per type and zone of the synthetic cluster")
      ->check(CLI::Range(1, 100000));
  app.add_option("--time-limit", options.time_limit_s, "seconds per row")->check(CLI::PositiveNumber);
  try {
    app.parse(argc, argv);
    if (options.generate < 0 && (options.scenarios.empty() || options.reference.empty()))
      throw CLI::RequiredError("--scenarios and --reference, or --generate");
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
