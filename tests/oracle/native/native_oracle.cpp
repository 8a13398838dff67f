#include "tests/oracle/native/native_oracle.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "planner/plan/plan_json.h"
#include "planner/search/search.h"
#include "tests/bench/native/child_process.h"
#include "tests/bench/native/hill_climb.h"
#include "tests/oracle/native/enumerate_plans.h"

namespace sailor::oracle {
namespace {

constexpr double kWorst_pct = 0.5, kRounding = 1e-9;
constexpr int64_t kClimbed = 400;

struct Totals {
  int rows = 0, failed = 0, ended = 0, infeasible = 0;
  int64_t simulations = 0;
  double enumeration_s = 0, search_s = 0, worse_pct = 0;
};

std::string number(const std::optional<double>& value) {
  return value ? fmt::format("{:.12g}", *value) : "none";
}

void write(const std::string& directory, const char* name, const std::optional<Plan>& plan) {
  if (!plan) return;
  std::filesystem::create_directories(directory);
  std::ofstream(directory + "/" + name) << to_json(*plan) << "\n";
}

void run_instance(const NativeOracleOptions& options, const Catalog& catalog, int instance, Totals& totals) {
  const PlannerInputs inputs = native_instance(catalog, options.seed, instance, options.limits);
  bench::Judge judge(inputs.context(), enumerated_features());
  std::vector<std::string> failures;

  PlanOptions of_search;
  of_search.allow = judge.allowed();
  of_search.explain = false;
  of_search.time_limit_s = options.time_limit_s;
  double start_s = bench::process_cpu_s();
  const SearchResult result = search(inputs.context(), of_search);
  totals.search_s += bench::process_cpu_s() - start_s;
  std::optional<double> ours, best;
  std::optional<Plan> found, optimum;
  if (!result.candidates.empty()) {
    found = result.candidates[0].plan;
    failures = judge.violations(*found);
    const std::optional<bench::Verdict> verdict = judge.verdict(*found);
    if (!verdict || !verdict->fits()) failures.push_back("the plan does not fit");
    if (failures.empty()) best = ours = verdict->iteration_s;
    optimum = found;
  }

  start_s = bench::process_cpu_s();
  if (std::optional<bench::Rival> climbed = bench::hill_climb(judge, {1, 10, kClimbed});
      climbed && (!best || climbed->iteration_s < *best)) {
    best = climbed->iteration_s;
    optimum = std::move(climbed->plan);
  }
  const PlanEnumeration all =
      enumerate_plans(judge, best.value_or(std::numeric_limits<double>::infinity()), options.simulations);
  totals.enumeration_s += bench::process_cpu_s() - start_s;
  if (all.best) {
    best = all.best_s;
    optimum = all.best;
    for (const std::string& violation : judge.violations(*all.best))
      throw std::logic_error("enumerated plan: " + violation);
  }

  const std::optional<double> bound = result.bound_iteration_s;
  double worse_pct = 0;
  if (best && !ours && failures.empty()) failures.push_back("no plan was found");
  if (best && ours) worse_pct = 100 * (*ours / *best - 1);
  if (worse_pct > kWorst_pct) failures.push_back(fmt::format("{:.2f} % worse than the optimum", worse_pct));
  if (best && bound && *bound > *best * (1 + kRounding)) failures.push_back("the bound is above the optimum");
  fmt::print("{},throughput,none,{},{},{},{:d},{:.3f},{},{:d}\n", instance, number(best), number(ours),
             number(bound), failures.empty(), worse_pct, all.simulations, all.complete);

  ++totals.rows;
  totals.ended += all.complete;
  totals.infeasible += !best;
  totals.simulations += all.simulations;
  totals.worse_pct += worse_pct;
  if (!options.dump.empty()) {
    write(options.dump, "ours.json", found);
    write(options.dump, "optimum.json", optimum);
  }
  if (failures.empty() || ++totals.failed > options.details) return;
  fmt::print(stderr, "instance {}: {}\n", instance, fmt::join(failures, "; "));
  if (optimum) fmt::print(stderr, "  optimum: {}\n", summary(*optimum));
  if (found) fmt::print(stderr, "  ours:    {}\n", summary(*found));
}

}  // namespace

int run_native_oracle(const NativeOracleOptions& options) {
  const Catalog catalog = load_catalog(options.catalog);
  fmt::print(stderr, "# seed {}\n", options.seed);
  fmt::print("instance,objective,limit,optimum,ours,bound,equal,worse_pct,simulations,enumerated\n");
  Totals totals;
  const int first = std::max(0, options.only), end = options.only < 0 ? options.count : first + 1;
  for (int instance = first; instance < end; ++instance) run_instance(options, catalog, instance, totals);
  fmt::print(stderr,
             "# {} instances ({} without any plan), {} enumerated to the end, {} simulations; worse_pct mean "
             "{:.3f}; CPU: {:.1f} s enumeration, {:.1f} s search\n",
             totals.rows, totals.infeasible, totals.ended, totals.simulations,
             totals.worse_pct / std::max(1, totals.rows), totals.enumeration_s, totals.search_s);
  fmt::print(stderr, "# {} rows, {} failed\n", totals.rows, totals.failed);
  return totals.failed == 0 ? 0 : 1;
}

}  // namespace sailor::oracle
