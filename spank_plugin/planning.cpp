#include "spank_plugin/planning.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "planner/plan/place.h"
#include "planner/plan/plan_json.h"
#include "planner/plan/validate.h"
#include "planner/report/candidate_table.h"
#include "planner/search/load_inputs.h"
#include "planner/search/search.h"
#include "planner/simulator/simulate.h"
#include "planner/spec/error.h"
#include "planner/spec/text.h"

namespace sailor {
namespace {

// One line for a snapshot that offers nothing.
std::string nothing_free(const Snapshot& snapshot) {
  if (snapshot.not_free.empty()) return "the cluster has no GPU node that this job may use";
  constexpr size_t kMaxShown = 4;
  size_t shown = std::min(kMaxShown, snapshot.not_free.size());
  std::string some =
      fmt::format("{}", fmt::join(snapshot.not_free.begin(), snapshot.not_free.begin() + shown, "; "));
  size_t more = snapshot.not_free.size() - shown;
  return fmt::format("no GPU node is free: {}{}", some, more > 0 ? fmt::format("; and {} more", more) : "");
}

PlannedJob use_given_plan(const SubmitOptions& options, const PlanningInputs& inputs) {
  PlannedJob planned;
  planned.plan = load_plan(options.plan_file);
  std::vector<std::string> wrong = check_plan(planned.plan, inputs.job);
  if (!wrong.empty()) {
    throw InputError({options.plan_file}, fmt::format("does not fit {}: {}", inputs.job.file, wrong.front()));
  }
  std::vector<std::string> taken = check_plan(planned.plan, inputs.snapshot);
  if (!taken.empty()) {
    throw Refusal(kInfeasible, fmt::format("{}: cannot start now: {}", options.plan_file, taken.front()));
  }
  try {
    place(planned.plan, inputs.snapshot);
  } catch (const std::runtime_error& error) {
    throw Refusal(kInfeasible, fmt::format("{}: cannot start now: {}", options.plan_file, error.what()));
  }
  Prediction prediction = simulate(inputs.context(), planned.plan);
  if (!planned.plan.prediction) {
    planned.plan.prediction = PlanPrediction{prediction.iteration_s, prediction.usd_per_iteration(),
                                             std::nullopt, std::nullopt, prediction.peak_memory_bytes()};
  }
  planned.table = stage_table(planned.plan, prediction);
  return planned;
}

PlannedJob search_plan(const SubmitOptions& options, const PlanningInputs& inputs) {
  PlanOptions plan_options;
  plan_options.time_limit_s = options.time_limit_s.value_or(inputs.site.planner_time_limit_s);
  SearchResult result = search(inputs.context(), plan_options);
  if (result.status == SearchStatus::time_limit) {
    throw Refusal(
        kTimeLimit,
        fmt::format("no plan found within {:g} s; allow more with --sailor-time-limit{}{}",
                    plan_options.time_limit_s, result.reason.empty() ? "" : ": ", one_line(result.reason)));
  }
  if (result.status == SearchStatus::infeasible || result.candidates.empty()) {
    throw Refusal(kInfeasible, "no feasible plan: " + one_line(result.reason));
  }
  return {result.candidates.front().plan, {}, {}, candidate_table(inputs.context(), result)};
}

}  // namespace

PlannedJob plan_job(const SubmitOptions& options, JobSpec job, const std::string& site_config_file,
                    const ClusterSource& cluster) {
  LiveCluster live;
  PlanningInputs inputs =
      load_inputs(std::move(job), site_config_file, options.overrides, [&](const SiteConfig& site) {
        live = cluster(site);
        return live.snapshot;
      });
  if (inputs.snapshot.nodes.empty()) throw Refusal(kInfeasible, nothing_free(inputs.snapshot));
  PlannedJob planned =
      options.plan_file.empty() ? search_plan(options, inputs) : use_given_plan(options, inputs);
  for (const std::string& note : inputs.notes) planned.table += "note: " + note + "\n";
  planned.components = allocate(planned.plan, live);
  planned.site_config = std::filesystem::absolute(inputs.site.file).lexically_normal().string();
  return planned;
}

}  // namespace sailor
