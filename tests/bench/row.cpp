#include "tests/bench/row.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "planner/plan/plan_json.h"
#include "planner/plan/validate.h"
#include "planner/search/search.h"

extern char** environ;

namespace sailor::bench {
namespace {

double cpu_s() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

// Peak of this program alone: getrusage() also knows of the one that it was started from.
double rss_mb() {
  std::ifstream status("/proc/self/status");
  std::string key;
  double kib = 0;
  while (status >> key)
    if (key == "VmHWM:" && status >> kib) return kib / 1024;
  return 0;
}

// At least as good as what the file says was reached, within the tolerance?
bool as_good(const Scenario& scenario, const Reached& reached, const SearchResult& result) {
  if (reached.none) return result.status == SearchStatus::infeasible;
  const bool found = !result.candidates.empty();
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

// A bound that any known plan beats is wrong.
std::vector<std::string> wrong_bounds(const Scenario& scenario, const SearchResult& result) {
  std::vector<std::string> out;
  const auto check = [&](std::optional<double> iter_per_s, std::optional<double> usd_per_iter,
                         const char* whose) {
    if (scenario.objective == Objective::throughput) {
      if (iter_per_s && result.bound_iteration_s &&
          1 / *result.bound_iteration_s < *iter_per_s * (1 - kTolerance))
        out.push_back(fmt::format("its bound is below {} plan", whose));
    } else if (usd_per_iter && result.bound[Expense::cost] &&
               *result.bound[Expense::cost] > *usd_per_iter * (1 + kTolerance)) {
      out.push_back(fmt::format("its bound is above {} plan", whose));
    }
  };
  check(scenario.known.iter_per_s, scenario.known.usd_per_iter, "the best known");
  if (!result.candidates.empty()) {
    const Prediction& own = result.candidates[0].prediction;
    check(own.iterations_per_s(), own.usd_per_iteration(), "its own");
  }
  return out;
}

// The bound in the units of the row. Without a plan: the bound that a limit exceeds, if there is one.
std::optional<double> bound_of(const Scenario& scenario, const SearchResult& result, bool* proves) {
  const auto rate = result.bound_iteration_s ? std::optional(1 / *result.bound_iteration_s) : std::nullopt;
  const auto usd = result.bound[Expense::cost];
  *proves = false;
  if (result.candidates.empty()) {
    *proves = true;
    if (scenario.min_iter_per_s && rate && *rate < *scenario.min_iter_per_s) return rate;
    if (scenario.max_usd && usd && *usd > *scenario.max_usd) return usd;
    *proves = false;
  }
  return scenario.objective == Expense::cost ? usd : rate;
}

void say(const Scenario& scenario, const std::vector<std::string>& lines) {
  for (const std::string& line : lines) fmt::print(stderr, "{}: {}\n", scenario.name, line);
}

std::string text_of(const std::optional<double>& value, const char* format = "{:.17g}") {
  return value ? fmt::format(fmt::runtime(format), *value) : "";
}

}  // namespace

const char* RowResult::header() {
  return "scenario,status,iter_per_s,usd_per_iter,bound,gap_pct,search_cpu_s,total_cpu_s,rss_mb,ref_ok,known_"
         "ok";
}

std::string RowResult::csv() const {
  return fmt::format("{},{},{},{},{},{},{:.3f},{:.3f},{:.0f},{},{}", name, status,
                     text_of(iter_per_s, "{:.6f}"), text_of(usd_per_iter, "{:.5f}"), text_of(bound, "{:.6f}"),
                     text_of(gap_pct, "{:.2f}"), search_cpu_s, total_cpu_s, rss_mb, ref_ok ? 1 : 0,
                     known_ok ? 1 : 0);
}

std::string RowResult::record() const {
  return fmt::format("{},{},{},{},{},{},{},{},{},{:d},{:d},{:d},{:d},{},{},{},{},{},{}", name, status,
                     text_of(iter_per_s), text_of(usd_per_iter), text_of(bound), text_of(gap_pct),
                     search_cpu_s, total_cpu_s, rss_mb, ref_ok, known_ok, passed, ended, value,
                     configurations, labels, beaten, compared, noted);
}

RowResult RowResult::from_record(const std::string& line) {
  const std::vector<std::string> fields = split_csv(line);
  if (fields.size() != 19) throw std::runtime_error("a row's process ended without a result: " + line);
  const auto number = [&](size_t i) { return std::stod(fields[i]); };
  const auto optional = [&](size_t i) {
    return fields[i].empty() ? std::nullopt : std::optional(std::stod(fields[i]));
  };
  RowResult row;
  row.name = fields[0];
  row.status = fields[1];
  row.iter_per_s = optional(2);
  row.usd_per_iter = optional(3);
  row.bound = optional(4);
  row.gap_pct = optional(5);
  row.search_cpu_s = number(6);
  row.total_cpu_s = number(7);
  row.rss_mb = number(8);
  row.ref_ok = fields[9] == "1";
  row.known_ok = fields[10] == "1";
  row.passed = fields[11] == "1";
  row.ended = fields[12] == "1";
  row.value = number(13);
  row.configurations = std::stoll(fields[14]);
  row.labels = std::stoll(fields[15]);
  row.beaten = std::stoi(fields[16]);
  row.compared = std::stoi(fields[17]);
  row.noted = std::stoi(fields[18]);
  return row;
}

RowResult run_row(const Scenario& scenario, const Inputs& inputs, const std::vector<Baseline>& baselines,
                  const RowOptions& options) {
  PlanOptions plan_options;
  plan_options.space = SearchSpace::paper;
  plan_options.cost_model = CostModel::published;
  plan_options.top_k = 1;
  plan_options.time_limit_s = options.time_limit_s;
  plan_options.without = options.without;
  plan_options.explain = false;
  const double search_started = cpu_s();
  const SearchResult result = search(inputs.context(), plan_options);
  RowResult row;
  row.name = scenario.name;
  row.search_cpu_s = cpu_s() - search_started;

  bool proves = false;
  row.bound = bound_of(scenario, result, &proves);
  std::vector<std::string> wrong = wrong_bounds(scenario, result);
  if (!result.candidates.empty()) {
    const Candidate& best = result.candidates.front();
    row.iter_per_s = best.prediction.iterations_per_s();
    row.usd_per_iter = best.prediction.usd_per_iteration();
    row.plan = best.plan;
    const bool cost = scenario.objective == Expense::cost;
    row.value = cost ? *row.usd_per_iter : best.prediction.iteration_s;
    const std::vector<std::string> of_plan = violations(scenario, inputs, best);
    row.status = !of_plan.empty() ? "invalid" : result.stats.complete ? "found" : "stopped";
    wrong.insert(wrong.end(), of_plan.begin(), of_plan.end());
    if (row.bound) row.gap_pct = 100 * (cost ? row.value / *row.bound - 1 : row.value * *row.bound - 1);
    if (!options.emit_plans.empty()) {
      std::filesystem::create_directories(options.emit_plans);
      std::ofstream(options.emit_plans + "/" + scenario.name + ".json") << to_json(best.plan) << "\n";
    }
  } else {
    row.status = result.status == SearchStatus::time_limit ? "time_limit" : "none";
    if (row.status == "none" && !proves && (scenario.max_usd || scenario.min_iter_per_s))
      wrong.push_back("no plan, and no bound that proves that the limit cannot be met");
  }
  const Standing standing =
      stand(scenario, baselines, row.iter_per_s.value_or(0), row.usd_per_iter.value_or(0));
  row.beaten = standing.beaten;
  row.compared = standing.compared;
  row.noted = standing.noted;
  if (!options.quiet) {
    say(scenario, wrong);
    say(scenario, standing.better);
    for (const std::string& line : standing.noted_better) say(scenario, {"not counted: " + line});
  }
  row.ref_ok = as_good(scenario, scenario.ref, result);
  row.known_ok = as_good(scenario, scenario.known, result);
  row.passed = wrong.empty() && row.known_ok && row.beaten == row.compared && row.status != "time_limit";
  row.ended = result.status != SearchStatus::time_limit && result.stats.complete;
  row.configurations = result.stats.configurations;
  row.labels = result.stats.labels;
  row.rss_mb = rss_mb();
  row.total_cpu_s = cpu_s();
  return row;
}

RowResult run_row_in_a_process(const std::vector<std::string>& arguments) {
  std::vector<std::string> owned = {"/proc/self/exe"};
  owned.insert(owned.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& argument : owned) argv.push_back(argument.data());
  argv.push_back(nullptr);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("cannot make a pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  pid_t child = 0;
  const int error = posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::string output;
  char buffer[4096];
  for (ssize_t n = 0; error == 0 && (n = read(ends[0], buffer, sizeof buffer)) > 0;)
    output.append(buffer, static_cast<size_t>(n));
  close(ends[0]);
  if (error != 0) throw std::runtime_error("cannot start a row's process");
  int status = 0;
  waitpid(child, &status, 0);
  while (!output.empty() && output.back() == '\n') output.pop_back();
  return RowResult::from_record(output.substr(output.rfind('\n') + 1));
}

}  // namespace sailor::bench
