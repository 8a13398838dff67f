#include "tests/bench/native/native_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include "planner/plan/plan_json.h"
#include "tests/bench/native/child_process.h"
#include "tests/bench/native/hill_climb.h"
#include "tests/bench/native/uniform_rivals.h"

namespace sailor::bench {
namespace {

constexpr double kTolerated_pct = 1;
constexpr double kRounding = 1e-9;

struct Found {
  std::optional<Plan> plan;
  double predicted_s = 0;
  std::optional<double> bound_s;
  bool complete = false;
  double cpu_s = 0, rss_mb = 0;
};

// One line of numbers (0 = none), then the plan, if any.
std::string run_search(const RandomProblem& problem, const NativeOptions& options) {
  const PlanOptions of_search = options.effort.options(options.search_effort);
  const double started_s = process_cpu_s();
  const SearchResult result = search(problem.inputs.context(), of_search);
  const double cpu_s = process_cpu_s() - started_s;
  const bool found = !result.candidates.empty();
  return fmt::format("{} {} {} {:d}\n{}", cpu_s, result.bound_iteration_s.value_or(0),
                     found ? result.candidates[0].prediction.iteration_s : 0, result.stats.complete,
                     found ? to_json(result.candidates[0].plan) : "");
}

Found read_search(const ChildOutput& output) {
  std::istringstream in(output.text);
  Found found;
  double bound_s = 0;
  in >> found.cpu_s >> bound_s >> found.predicted_s >> found.complete;
  if (bound_s > 0) found.bound_s = bound_s;
  found.rss_mb = output.rss_mb;
  if (found.predicted_s > 0) found.plan = parse_plan(output.text.substr(output.text.find('\n') + 1), "plan");
  return found;
}

std::string run_rivals(const RandomProblem& problem, const NativeOptions& options, int number,
                       const Found& found) {
  if (options.rivals == Rivals::none) return "";
  const bool fast = options.rivals == Rivals::fast;
  const int64_t uniform = fast ? 1000 : 6000, climbed = fast ? 1000 : 10'000;
  const double effort = fast ? 0.25 : 10;
  Judge judge(problem.inputs.context());
  std::optional<Rival> best = best_uniform(judge, uniform);
  const uint64_t seed = options.seed + static_cast<uint64_t>(number);
  keep_faster(best, hill_climb(judge, {seed, 10, climbed}));
  keep_faster(best, best_on_parts(judge, options.effort, effort, !fast));
  if (!fast) keep_faster(best, best_published(judge, options.effort, effort));
  if (options.rivals == Rivals::hard) {
    keep_faster(best, best_composed(judge));
    if (best) keep_faster(best, climb_from(judge, *best, seed, climbed));
    if (found.plan)
      keep_faster(best, climb_from(judge, {"ours", *found.plan, found.predicted_s}, seed, climbed));
  }
  if (!best) return "";
  const std::vector<std::string> wrong = judge.violations(best->plan);
  if (!wrong.empty()) throw std::logic_error(best->name + ": " + wrong.front());
  return fmt::format("{} {}\n{}", best->iteration_s, best->name, to_json(best->plan));
}

std::optional<Rival> read_rivals(const std::string& text) {
  if (text.empty()) return std::nullopt;
  std::istringstream in(text);
  Rival rival;
  in >> rival.iteration_s >> std::ws;
  std::getline(in, rival.name);
  rival.plan = parse_plan(text.substr(text.find('\n') + 1), "rival");
  return rival;
}

// Failures of the search's own result, independent of the rivals.
std::vector<std::string> wrongs(const RandomProblem& problem, const Found& found,
                                const std::optional<Rival>& rival) {
  std::vector<std::string> out;
  if (rival && found.bound_s && rival->iteration_s < *found.bound_s * (1 - kRounding))
    out.push_back(fmt::format("{} is faster than the bound", rival->name));
  if (!found.plan) {
    if (rival) out.push_back("no plan was found, but there is one");
    return out;
  }
  Judge judge(problem.inputs.context());
  for (const std::string& violation : judge.violations(*found.plan)) out.push_back(violation);
  if (!out.empty()) return out;
  const std::optional<Verdict> verdict = judge.verdict(*found.plan);
  if (!verdict || !verdict->fits()) out.push_back("the plan does not fit");
  if (verdict && std::abs(verdict->iteration_s - found.predicted_s) > kRounding * found.predicted_s)
    out.push_back("the plan's prediction is not the simulator's");
  if (found.bound_s && found.predicted_s < *found.bound_s * (1 - kRounding))
    out.push_back("the plan is faster than the bound");
  return out;
}

std::string text_of(std::optional<double> value, const char* format) {
  return value ? fmt::format(fmt::runtime(format), *value) : "";
}

struct Summary {
  std::vector<double> worse_pct, gap_pct;
  double slowest_cpu_s = 0, most_rss_mb = 0;
  int problems = 0, failed = 0;

  static std::string quantile(std::vector<double> values, double part) {
    if (values.empty()) return "none";
    std::sort(values.begin(), values.end());
    return fmt::format("{:.2f}", values[static_cast<size_t>(part * static_cast<double>(values.size() - 1))]);
  }
  void print() const {
    double sum = 0, losses = 0;
    for (double pct : worse_pct) {
      sum += pct;
      losses += std::max(0.0, pct);
    }
    const double count = std::max(1.0, static_cast<double>(worse_pct.size()));
    fmt::print(
        stderr,
        "# {} problems, {} failed; worse_pct mean {:.2f} (counting only losses {:.2f}), max {}; gap_pct "
        "median {}, 90th percentile {}; search at most {:.2f} s of CPU, {:.0f} MB\n",
        problems, failed, sum / count, losses / count, quantile(worse_pct, 1), quantile(gap_pct, 0.5),
        quantile(gap_pct, 0.9), slowest_cpu_s, most_rss_mb);
  }
};

void run_problem(const NativeOptions& options, const Catalog& catalog, int number, Summary& summary) {
  const RandomProblem problem = random_problem(catalog, options.seed, number, options.limits);
  if (!options.dump.empty()) dump_problem(problem, options.dump);
  const Found found = read_search(run_in_child([&] { return run_search(problem, options); }));
  const std::optional<Rival> rival =
      read_rivals(run_in_child([&] { return run_rivals(problem, options, number, found); }).text);
  std::optional<double> iteration_s, gap_pct, rival_s, worse_pct;
  if (found.plan) iteration_s = found.predicted_s;
  if (rival) rival_s = rival->iteration_s;
  if (iteration_s && found.bound_s) gap_pct = 100 * (*iteration_s / *found.bound_s - 1);
  if (iteration_s && rival_s) worse_pct = 100 * (*iteration_s / *rival_s - 1);
  fmt::print("{},{},{},{},{},{},{},{},{},{},{:.3f},{:.0f},{:d}\n", number, problem.gpus(),
             problem.types().size(), problem.zones().size(), text_of(iteration_s, "{:.6g}"),
             text_of(found.bound_s, "{:.6g}"), text_of(gap_pct, "{:.2f}"), rival ? rival->name : "none",
             text_of(rival_s, "{:.6g}"), text_of(worse_pct, "{:.2f}"), found.cpu_s, found.rss_mb,
             found.complete);
  std::fflush(stdout);

  const std::vector<std::string> wrong = wrongs(problem, found, rival);
  for (const std::string& line : wrong) fmt::print(stderr, "problem {}: {}\n", number, line);
  ++summary.problems;
  summary.failed += !wrong.empty() || worse_pct.value_or(0) > kTolerated_pct;
  if (worse_pct) summary.worse_pct.push_back(*worse_pct);
  if (gap_pct) summary.gap_pct.push_back(*gap_pct);
  summary.slowest_cpu_s = std::max(summary.slowest_cpu_s, found.cpu_s);
  summary.most_rss_mb = std::max(summary.most_rss_mb, found.rss_mb);
  if (options.dump.empty()) return;
  if (found.plan) std::ofstream(options.dump + "/plan.json") << to_json(*found.plan) << "\n";
  if (rival) std::ofstream(options.dump + "/rival.json") << to_json(rival->plan) << "\n";
}

}  // namespace

int run_native(const NativeOptions& options) {
  const Catalog catalog = load_catalog(options.catalog);
  fmt::print(stderr, "# seed {}\n", options.seed);
  fmt::print(
      "problem,gpus,types,zones,iteration_s,bound_s,gap_pct,rival,rival_s,worse_pct,search_cpu_s,rss_mb,"
      "complete\n");
  Summary summary;
  const int first = std::max(0, options.only), end = options.only < 0 ? options.count : first + 1;
  for (int number = first; number < end; ++number) run_problem(options, catalog, number, summary);
  summary.print();
  return summary.failed == 0 ? 0 : 1;
}

}  // namespace sailor::bench
