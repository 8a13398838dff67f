// Does the search find the best plan? Draws small problems from a seed, enumerates all their plans, and holds
// the search against that, both objectives, with and without limits (check.h). Search space `paper`, cost
// model `published`; with `--cost-model native` the space `full` and throughput (native/native_oracle.h).
//
// CSV on stdout, one row per (instance, objective, limit): optimum, ours and bound are seconds per iteration
// for throughput and USD per iteration for cost, `none` where there is no plan or bound. On stderr: the seed,
// what fails and why, how much was enumerated. Exit 1 when any row fails.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <map>

#include "tests/oracle/check.h"
#include "tests/oracle/dump.h"
#include "tests/oracle/enumerate.h"
#include "tests/oracle/generate.h"
#include "tests/oracle/native/native_oracle.h"

namespace sailor::oracle {
namespace {

constexpr int kFailed = 1, kBadInput = 2;

double cpu_s() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

std::string number(const std::optional<double>& value) {
  return value ? fmt::format("{:.12g}", *value) : "none";
}

struct Totals {
  int rows = 0, failed = 0, instances = 0, infeasible = 0;
  int64_t partial_grids = 0, grids = 0, orders = 0;
  double enumeration_s = 0, search_s = 0;
  std::map<std::string, int> kinds;
};

struct Options {
  uint64_t seed = 1;
  int count = 1, only = -1;
  Limits limits;
  double time_limit_s = 10;
  int details = 20;
  std::string dump;
  CostModel cost_model = CostModel::published;
  int64_t simulations = 200'000;
  std::string catalog = SAILOR_SOURCE_DIR "/etc/catalog.yaml";
};

void run_instance(const Options& options, int instance, Totals& totals) {
  const Problem problem = generate(instance_seed(options.seed, instance), options.limits);
  double start = cpu_s();
  const Enumeration all = enumerate(problem);
  totals.enumeration_s += cpu_s() - start;
  start = cpu_s();
  const std::vector<Row> rows = check_instance(problem, all, options.time_limit_s);
  totals.search_s += cpu_s() - start;
  ++totals.instances;
  totals.infeasible += all.front.empty() ? 1 : 0;
  totals.partial_grids += all.partial_grids;
  totals.grids += all.grids;
  totals.orders += all.orders;
  for (const Row& row : rows) {
    fmt::print("{},{},{},{},{},{},{}\n", instance, to_string(row.objective), row.limit(), number(row.optimum),
               number(row.ours), number(row.bound), row.equal ? 1 : 0);
    ++totals.rows;
    if (row.failures.empty()) continue;
    for (const std::string& kind : row.failures) ++totals.kinds[kind];
    if (++totals.failed > options.details) continue;
    fmt::print(stderr, "instance {}, {}, limit {}: {}\n", instance, to_string(row.objective), row.limit(),
               row.detail);
    if (row.best) fmt::print(stderr, "  optimum: {}\n", to_string(problem, *row.best));
    if (row.found) fmt::print(stderr, "  ours:    {}\n", summary(*row.found));
  }
  if (!options.dump.empty()) {
    dump_problem(problem, options.dump);
    dump_plans(problem, rows, options.dump);
  }
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app{"Holds the search against exhaustive enumeration of small random problems"};
  app.add_option("--seed", options.seed, "seed of the problems");
  app.add_option("--count", options.count, "number of problems")->check(CLI::PositiveNumber);
  app.add_option("--types", options.limits.types, "most GPU types")->check(CLI::Range(1, 26));
  app.add_option("--zones", options.limits.zones, "most zones")->check(CLI::Range(1, 26));
  app.add_option("--gpus", options.limits.gpus, "most free GPUs")->check(CLI::Range(1, 24));
  app.add_option("--layers", options.limits.layers, "most layers, embedding and head included")
      ->check(CLI::Range(3, 20));
  app.add_option("--time-limit", options.time_limit_s, "seconds for one search")->check(CLI::PositiveNumber);
  app.add_option("--details", options.details, "failing rows to describe on stderr")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--only", options.only, "only the instance of this number")->check(CLI::NonNegativeNumber);
  app.add_option("--dump", options.dump,
                 "with --only: write the problem and the plans of failing rows there");
  app.add_option("--cost-model", options.cost_model, "published or native")
      ->transform(CLI::CheckedTransformer(std::map<std::string, CostModel>{
          {"published", CostModel::published}, {"native", CostModel::native}}));
  app.add_option("--simulations", options.simulations, "most of one enumeration, for the native model")
      ->check(CLI::PositiveNumber);
  app.add_option("--catalog", options.catalog, "GPU types, for the native model")->check(CLI::ExistingFile);
  try {
    app.parse(argc, argv);
    if (!options.dump.empty() && options.only < 0)
      throw CLI::ValidationError("--dump", "needs --only INSTANCE beside it");
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kBadInput;
  }

  if (options.cost_model == CostModel::native) {
    const NativeLimits most;
    const auto limit = [&](const char* name, int given, int otherwise) {
      return app.count(name) > 0 ? given : otherwise;
    };
    const NativeLimits limits = {limit("--gpus", options.limits.gpus, most.gpus),
                                 limit("--types", options.limits.types, most.types),
                                 limit("--zones", options.limits.zones, most.zones),
                                 limit("--layers", options.limits.layers, most.layers)};
    return run_native_oracle({options.seed, options.count, options.only, limits, options.time_limit_s,
                              options.simulations, options.details, options.catalog, options.dump});
  }

  fmt::print(stderr, "# seed {}\n", options.seed);
  fmt::print("instance,objective,limit,optimum,ours,bound,equal\n");
  Totals totals;
  const int first = options.only >= 0 ? options.only : 0;
  const int end = options.only >= 0 ? options.only + 1 : options.count;
  for (int instance = first; instance < end; ++instance) run_instance(options, instance, totals);

  for (const auto& [kind, rows] : totals.kinds) fmt::print(stderr, "# {}: {} rows\n", kind, rows);
  fmt::print(
      stderr,
      "# {} instances ({} without any plan), {} grids and {} orders of them enumerated, {} partial ones; "
      "CPU: {:.1f} s enumeration, {:.1f} s search\n",
      totals.instances, totals.infeasible, totals.grids, totals.orders, totals.partial_grids,
      totals.enumeration_s, totals.search_s);
  fmt::print(stderr, "# {} rows, {} failed\n", totals.rows, totals.failed);
  return totals.failed == 0 ? 0 : kFailed;
}

}  // namespace
}  // namespace sailor::oracle

int main(int argc, char** argv) {
  try {
    return sailor::oracle::run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "oracle: {}\n", error.what());
    return 1;
  }
}
