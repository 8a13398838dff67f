#include "spank_plugin/planning.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "planner/inputs/load_inputs.h"
#include "planner/inputs/search_request.h"
#include "planner/plan/place.h"
#include "planner/plan/plan_json.h"
#include "planner/plan/rank_layout.h"
#include "planner/plan/validate.h"
#include "planner/report/candidate_table.h"
#include "planner/report/stage_table.h"
#include "planner/simulator/simulate.h"
#include "planner/spec/busy_nodes.h"
#include "planner/spec/error.h"
#include "planner/spec/text.h"
#include "spank_plugin/node_choice.h"
#include "spank_plugin/waiting_offer.h"

namespace sailor {
namespace {

// One line for a snapshot that offers nothing.
std::string nothing_free(const Snapshot& snapshot) {
  if (snapshot.not_free.empty()) return "the cluster has no GPU node that this job may use";
  if (!snapshot.busy.empty()) {
    return fmt::format("every GPU node that this job may use is busy: {}: {}", busy_nodes_text(snapshot.busy),
                       kHowToWait);
  }
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
    planned.plan.prediction = PlanPrediction{
        prediction.iteration_s, totals(prediction.spent), std::nullopt, {}, prediction.peak_memory_bytes()};
  }
  planned.table = stage_table(planned.plan, prediction);
  return planned;
}

// Within --nodes: searches once for every choice of nodes, all in the same time limit.
SearchResult search_within(int max_nodes, const PlanningContext& context, PlanOptions options,
                           std::vector<std::string>& notes) {
  NodeChoices choices = choose_nodes(context.snapshot, max_nodes);
  options.time_limit_s /= static_cast<double>(choices.snapshots.size());
  std::optional<SearchResult> best;
  for (const Snapshot& snapshot : choices.snapshots) {
    SearchResult result =
        search(PlanningContext{context.job, snapshot, context.catalog, context.profiles, context.framework},
               options);
    best = best ? better_of(std::move(*best), std::move(result), context.job.objective) : std::move(result);
  }
  if (!choices.complete) {
    notes.push_back(fmt::format("--nodes={}: not every choice of nodes was tried", max_nodes));
    best->stats.complete = false;
    best->bound_iteration_s.reset();
    best->bound = {};
  }
  return std::move(*best);
}

SearchResult search_nodes(const NodeWishes& wishes, const PlanningContext& context,
                          const PlanOptions& options, std::vector<std::string>& notes) {
  bool few = wishes.max_nodes && static_cast<int>(context.snapshot.nodes.size()) > *wishes.max_nodes;
  return few ? search_within(*wishes.max_nodes, context, options, notes) : search(context, options);
}

// A note if the training would finish earlier on nodes that become free later.
std::string waiting_note(const NodeWishes& wishes, const PlanningInputs& inputs, PlanOptions options,
                         const SearchResult& found, int64_t clock_s) {
  constexpr double kEffort_s = 0.2;
  if (wishes.include_busy || inputs.job.objective.expense()) return "";
  if (inputs.snapshot.busy.empty()) return "";
  const Candidate& now = found.candidates.front();
  options.top_k = 1;
  options.explain = false;
  options.previous = {now.plan};
  options.time_limit_s /= 4;
  const ShortSearch plan = [&](const Snapshot& snapshot, double effort_s) {
    std::vector<std::string> notes;
    options.effort_limit_s = effort_s;
    return search_nodes(wishes, inputs.context(snapshot), options, notes);
  };
  std::optional<WaitingOffer> offer =
      worth_waiting(inputs.snapshot, now, inputs.job.training.steps, kEffort_s, plan);
  if (!offer) return "";
  // The last --exclude counts.
  if (!offer->later_nodes.empty())
    offer->later_nodes.insert(offer->later_nodes.end(), wishes.excluded_nodes.begin(),
                              wishes.excluded_nodes.end());
  return waiting_text(*offer, clock_s);
}

SearchRequest request_of(const SubmitOptions& options) {
  SearchRequest request;
  request.time_limit_s = options.time_limit_s;
  request.effort = options.effort;
  return request;
}

PlannedJob search_plan(const SubmitOptions& options, const NodeWishes& wishes, PlanningInputs& inputs,
                       int64_t clock_s, const std::optional<PlannedStart>& start) {
  const PlanOptions plan = plan_options(request_of(options), inputs.site);
  SearchResult result = search_nodes(wishes, inputs.context(), plan, inputs.notes);
  if (result.status == SearchStatus::time_limit) {
    throw Refusal(kTimeLimit,
                  fmt::format("no plan found within {:g} s; allow more with --sailor-time-limit{}{}",
                              plan.time_limit_s, result.reason.empty() ? "" : ": ", one_line(result.reason)));
  }
  if (result.status == SearchStatus::infeasible || result.candidates.empty()) {
    throw Refusal(kInfeasible, "no feasible plan: " + one_line(result.reason));
  }
  PlannedJob planned;
  planned.plan = result.candidates.front().plan;
  keep_first(result, kShownCandidates);
  planned.table = candidate_table(inputs.context(), result, start);
  if (!options.choose_start) planned.table += waiting_note(wishes, inputs, plan, result, clock_s);
  return planned;
}

// One line for squeue: `sailor: 8 X + 4 Y, 1.02 s/iteration, 0.0113 USD/iteration`.
std::string comment_of(const Plan& plan) {
  std::map<std::string, int> gpus;
  for (const PlanPipeline& pipeline : plan.pipelines) {
    for (int group = 0; group < num_groups(plan, pipeline); ++group) {
      const PlanStage& stage = pipeline.stages[static_cast<size_t>(group)];
      gpus[stage.gpu_type] += stage.shape.gpus();
    }
  }
  std::vector<std::string> parts;
  for (const auto& [type, count] : gpus) parts.push_back(fmt::format("{} {}", count, type));
  std::string line = fmt::format("sailor: {}", fmt::join(parts, " + "));
  if (plan.prediction) {
    line += fmt::format(", {:.4g} s/iteration", plan.prediction->iteration_s);
    for (const Expense expense : kExpenses)
      if (is_told(expense, plan.prediction->spent[expense] > 0))
        line += fmt::format(", {:.4g} {}/iteration", plan.prediction->spent[expense], kind_of(expense).unit);
  }
  constexpr size_t kMaxBytes = 1000;  // Slurm cuts comments at 1 KiB
  return line.substr(0, kMaxBytes);
}

}  // namespace

PlannedJob plan_job(const SubmitOptions& options, JobSpec job, const SiteConfig& site,
                    const NodeWishes& wishes, const ClusterSource& cluster,
                    const std::optional<PlannedStart>& start) {
  LiveCluster live;
  PlanningInputs inputs = load_inputs(std::move(job), site, options.overrides, [&](const SiteConfig&) {
    live = cluster();
    return live.snapshot;
  });
  if (inputs.snapshot.nodes.empty()) throw Refusal(kInfeasible, nothing_free(inputs.snapshot));
  PlannedJob planned = options.plan_file.empty() ? search_plan(options, wishes, inputs, live.now, start)
                                                 : use_given_plan(options, wishes, inputs);
  for (const std::string& note : inputs.notes) planned.table += "note: " + note + "\n";
  planned.components = allocate(planned.plan, live);
  planned.comment = comment_of(planned.plan);
  planned.planning = planning_files(inputs, request_of(options));
  planned.site_config = std::filesystem::absolute(inputs.site.file).lexically_normal().string();
  return planned;
}

}  // namespace sailor
