#include "spank_plugin/planning.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "planner/plan/place.h"
#include "planner/plan/plan_json.h"
#include "planner/plan/rank_layout.h"
#include "planner/plan/validate.h"
#include "planner/report/candidate_table.h"
#include "planner/search/load_inputs.h"
#include "planner/search/search.h"
#include "planner/simulator/simulate.h"
#include "planner/spec/error.h"
#include "planner/spec/text.h"
#include "spank_plugin/node_choice.h"

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

int nodes_of(const Plan& plan) {
  std::set<std::string> nodes;
  RankLayout layout(plan);
  for (const RankSlot& slot : layout.slots()) nodes.insert(slot.node);
  return static_cast<int>(nodes.size());
}

PlannedJob use_given_plan(const SubmitOptions& options, const NodeWishes& wishes,
                          const PlanningInputs& inputs) {
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
  if (int count = nodes_of(planned.plan); wishes.max_nodes && count > *wishes.max_nodes) {
    throw Refusal(kInfeasible, fmt::format("{}: needs {} nodes, --nodes allows {}", options.plan_file, count,
                                           *wishes.max_nodes));
  }
  Prediction prediction = simulate(inputs.context(), planned.plan);
  if (!planned.plan.prediction) {
    planned.plan.prediction = PlanPrediction{prediction.iteration_s, prediction.usd_per_iteration(),
                                             std::nullopt, std::nullopt, prediction.peak_memory_bytes()};
  }
  planned.table = stage_table(planned.plan, prediction);
  return planned;
}

// Within --nodes: searches once for every choice of nodes, all in the same time limit.
SearchResult search_within(int max_nodes, const PlanningInputs& inputs, PlanOptions options,
                           std::vector<std::string>& notes) {
  NodeChoices choices = choose_nodes(inputs.snapshot, max_nodes);
  options.time_limit_s /= static_cast<double>(choices.snapshots.size());
  std::optional<SearchResult> best;
  for (const Snapshot& snapshot : choices.snapshots) {
    SearchResult result =
        search(PlanningContext{inputs.job, snapshot, inputs.catalog, inputs.profiles}, options);
    best = best ? better_of(std::move(*best), std::move(result), inputs.job.objective) : std::move(result);
  }
  if (!choices.complete) {
    notes.push_back(fmt::format("--nodes={}: not every choice of nodes was tried", max_nodes));
    best->stats.complete = false;
    best->bound_iteration_s.reset();
    best->bound_usd_per_iteration.reset();
  }
  return std::move(*best);
}

PlannedJob search_plan(const SubmitOptions& options, const NodeWishes& wishes, PlanningInputs& inputs) {
  PlanOptions plan_options;
  plan_options.time_limit_s = options.time_limit_s.value_or(inputs.site.planner_time_limit_s);
  bool few = wishes.max_nodes && static_cast<int>(inputs.snapshot.nodes.size()) > *wishes.max_nodes;
  SearchResult result = few ? search_within(*wishes.max_nodes, inputs, plan_options, inputs.notes)
                            : search(inputs.context(), plan_options);
  if (result.status == SearchStatus::time_limit) {
    throw Refusal(
        kTimeLimit,
        fmt::format("no plan found within {:g} s; allow more with --sailor-time-limit{}{}",
                    plan_options.time_limit_s, result.reason.empty() ? "" : ": ", one_line(result.reason)));
  }
  if (result.status == SearchStatus::infeasible || result.candidates.empty()) {
    throw Refusal(kInfeasible, "no feasible plan: " + one_line(result.reason));
  }
  PlannedJob planned;
  planned.plan = result.candidates.front().plan;
  planned.table = candidate_table(inputs.context(), result);
  return planned;
}

// One line for squeue: `sailor: 8 X + 4 Y, 1.02 s/iteration, 0.0113 USD/iteration`.
std::string comment_of(const Plan& plan) {
  std::map<std::string, int> gpus;
  for (const PlanPipeline& pipeline : plan.pipelines) {
    for (const PlanStage& stage : pipeline.stages) gpus[stage.gpu_type] += stage.tp;
  }
  std::vector<std::string> parts;
  for (const auto& [type, count] : gpus) parts.push_back(fmt::format("{} {}", count, type));
  std::string line = fmt::format("sailor: {}", fmt::join(parts, " + "));
  if (plan.prediction) {
    line += fmt::format(", {:.4g} s/iteration, {:.4g} USD/iteration", plan.prediction->iteration_s,
                        plan.prediction->usd_per_iteration);
  }
  constexpr size_t kMaxBytes = 1000;  // Slurm cuts comments at 1 KiB
  return line.substr(0, kMaxBytes);
}

}  // namespace

PlannedJob plan_job(const SubmitOptions& options, JobSpec job, const std::string& site_config_file,
                    const NodeWishes& wishes, const ClusterSource& cluster) {
  LiveCluster live;
  PlanningInputs inputs =
      load_inputs(std::move(job), site_config_file, options.overrides, [&](const SiteConfig& site) {
        live = cluster(site);
        return live.snapshot;
      });
  if (inputs.snapshot.nodes.empty()) throw Refusal(kInfeasible, nothing_free(inputs.snapshot));
  PlannedJob planned = options.plan_file.empty() ? search_plan(options, wishes, inputs)
                                                 : use_given_plan(options, wishes, inputs);
  for (const std::string& note : inputs.notes) planned.table += "note: " + note + "\n";
  planned.components = allocate(planned.plan, live);
  planned.comment = comment_of(planned.plan);
  planned.site_config = std::filesystem::absolute(inputs.site.file).lexically_normal().string();
  return planned;
}

}  // namespace sailor
