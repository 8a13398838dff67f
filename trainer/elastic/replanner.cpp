#include "trainer/elastic/replanner.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <numeric>
#include <set>

#include "planner/inputs/search_request.h"
#include "planner/plan/plan_nodes.h"
#include "planner/plan/rank_layout.h"
#include "planner/plan/validate.h"
#include "planner/report/candidate_table.h"
#include "planner/search/change_room.h"
#include "planner/spec/error.h"
#include "trainer/elastic/keep_stages.h"

namespace sailor {
namespace {

constexpr double kWorthWhile = 0.02;
constexpr double kWorthANode = 0.005;
constexpr int kShown = 3;  // candidates of a search

// A value to be minimized.
std::optional<double> objective_of(const JobSpec& job, const Plan& plan) {
  if (!plan.prediction) return std::nullopt;
  return job.objective.value(plan.prediction->figures());
}

}  // namespace

void prefer_fewer_nodes(const Objective& objective, std::vector<Candidate>& candidates) {
  const auto value = [&](const Candidate& candidate) {
    return objective.value(candidate.prediction.figures());
  };
  const double limit = value(candidates.front()) * (1 + kWorthANode);
  auto best = candidates.begin();
  for (auto it = best; it != candidates.end(); ++it)
    if (!it->only_shown && value(*it) <= limit &&
        RankLayout(it->plan).nodes().size() < RankLayout(best->plan).nodes().size())
      best = it;
  std::rotate(candidates.begin(), best, best + 1);
}

void place_on_imagined_nodes(Plan& plan) {
  for (size_t p = 0; p < plan.pipelines.size(); ++p) {
    PlanPipeline& pipeline = plan.pipelines[p];
    const auto groups = static_cast<size_t>(std::max(1, num_groups(plan, pipeline)));
    for (size_t s = 0; s < pipeline.stages.size(); ++s) {
      PlanStage& stage = pipeline.stages[s];
      if (!stage.node.empty()) continue;
      stage.node = fmt::format("stage-{}-{}", p, s % groups);
      stage.gpus.resize(static_cast<size_t>(stage.shape.gpus()));
      std::iota(stage.gpus.begin(), stage.gpus.end(), 0);
    }
  }
}

Replanner::Replanner(const JobSpec& job, const Plan& plan, const Options& options)
    : job_(job), first_(plan), options_(options), whole_(nodes_of_plan(plan)) {
  if (!std::filesystem::exists(options.site_config)) {
    text_ = fmt::format("there is no {}", options.site_config);
    return;
  }
  try {
    inputs_ = load_inputs(job, options.site_config, options.overrides, [&](const SiteConfig& site) {
      set_regions(whole_, site);
      return whole_;
    });
    // They were applied when the nodes were chosen, and plans do not contain partitions.
    inputs_->job.resources.partitions.clear();
    text_ = "by search";
  } catch (const InputError& error) {
    text_ = error.what();
  }
}

Snapshot Replanner::snapshot_of(const std::vector<LiveGpu>& gpus) const {
  Snapshot snapshot = inputs_ ? inputs_->snapshot : whole_;
  std::map<std::string, std::set<int>> live;
  for (const LiveGpu& gpu : gpus) live[gpu.node].insert(gpu.gpu);
  for (SnapshotNode& node : snapshot.nodes)
    std::erase_if(node.free_gpus, [&](int gpu) { return !live[node.name].contains(gpu); });
  std::erase_if(snapshot.nodes, [](const SnapshotNode& node) { return node.free_gpus.empty(); });
  return snapshot;
}

// The complete pipelines of the first plan, which share the batch as it shares it.
std::optional<Plan> Replanner::cut_down(const Snapshot& snapshot) const {
  const auto live = [&](const PlanStage& stage) {
    const SnapshotNode* node = snapshot.find(stage.node, stage.gpu_type);
    return node != nullptr && std::all_of(stage.gpus.begin(), stage.gpus.end(), [&](int gpu) {
             return std::find(node->free_gpus.begin(), node->free_gpus.end(), gpu) != node->free_gpus.end();
           });
  };
  Plan plan = first_;
  std::erase_if(plan.pipelines, [&](const PlanPipeline& pipeline) {
    return !std::all_of(pipeline.stages.begin(), pipeline.stages.end(), live);
  });
  if (plan.pipelines.empty()) return std::nullopt;
  if (plan.pipelines.size() == first_.pipelines.size()) return plan;
  plan.prediction.reset();
  share_batch(plan);
  if (!zero_groups_match(plan, job_.model)) plan.zero_group = 0;
  if (!check_plan(plan, job_).empty()) return std::nullopt;
  return plan;
}

// Without a plan, `text` says why.
Replanned Replanner::search_plan(const Snapshot& snapshot, std::vector<Plan> previous,
                                 const Time& time) const {
  const PlanningContext context = inputs_->context(snapshot);
  SearchRequest request;
  request.time_limit_s = time.limit_s;
  request.stop = time.stop;
  request.explain = false;
  if (!previous.empty()) request.keep_precision = previous.front().precision;
  request.previous = std::move(previous);
  SearchResult result = search(context, plan_options(request, inputs_->site));
  if (result.status == SearchStatus::time_limit)
    return {std::nullopt, "no plan was found in time", "", {}, false};
  if (result.status != SearchStatus::found) return {std::nullopt, result.reason, "", {}};
  prefer_fewer_nodes(job().objective, result.candidates);
  std::vector<Plan> plans;
  for (Candidate& candidate : result.candidates) plans.push_back(candidate.plan);
  keep_first(result, kShown);
  std::string table = candidate_table(context, result);
  Plan best = std::move(plans.front());
  plans.erase(plans.begin());
  return {std::move(best), "new search", std::move(table), std::move(plans), result.stats.complete};
}

Replanned Replanner::plan_for(const std::vector<LiveGpu>& gpus, const Plan& previous,
                              const std::vector<Plan>& runners_up, std::optional<Time> time) const {
  const Snapshot snapshot = snapshot_of(gpus);
  if (snapshot.nodes.empty()) return {std::nullopt, "no GPU of the job has a process", "", {}};
  Replanned out = plan_on(snapshot, gpus.size(), previous, runners_up, time.value_or(options_.time));
  out.nodes = snapshot;
  return out;
}

Replanned Replanner::plan_on(const Snapshot& snapshot, size_t gpus, const Plan& previous,
                             const std::vector<Plan>& runners_up, const Time& time) const {
  std::string why_not = text_;
  bool complete = true;
  if (inputs_) {
    try {
      std::vector<Plan> plans = {previous};
      plans.insert(plans.end(), runners_up.begin(), runners_up.end());
      Replanned found = search_plan(snapshot, std::move(plans), time);
      if (found.plan) {
        keep_stages(*found.plan, snapshot, held_stages(previous));
        return found;
      }
      why_not = found.text;
      complete = found.complete;
    } catch (const InputError& error) {  // a link or a shape without a profile
      why_not = error.what();
    }
  }
  if (std::optional<Plan> plan = cut_down(snapshot)) {
    const size_t kept = plan->pipelines.size(), all = first_.pipelines.size();
    return {std::move(plan),
            fmt::format("{} of the plan's {} pipelines ({})", kept, all, why_not),
            "",
            {},
            complete};
  }
  return {std::nullopt,
          fmt::format("no plan for the {} remaining GPU{}: {}", gpus, gpus == 1 ? "" : "s", why_not),
          "",
          {},
          complete};
}

std::set<int> Replanner::without_room(const Plan& from, const Plan& to) const {
  if (!inputs_) return {};
  try {
    return ranks_without_room(inputs_->context(), from, to);
  } catch (const InputError&) {  // a shape without a profile
    return {};
  }
}

std::optional<PlanPrediction> Replanner::prediction_of(const Plan& plan) const {
  if (plan.prediction || !inputs_) return plan.prediction;
  try {
    const Prediction prediction = simulate(inputs_->context(), plan);
    return PlanPrediction{
        prediction.iteration_s, totals(prediction.spent), std::nullopt, {}, prediction.peak_memory_bytes()};
  } catch (const InputError&) {  // a shape without a profile
    return std::nullopt;
  }
}

PlanningFiles Replanner::planning_files() const {
  if (!inputs_) return {};
  return sailor::planning_files(*inputs_, {});
}

void Replanner::add_node(const SnapshotNode& node) {
  for (Snapshot* snapshot : {&whole_, inputs_ ? &inputs_->snapshot : nullptr}) {
    if (!snapshot) continue;
    std::erase_if(snapshot->nodes, [&](const SnapshotNode& known) { return known.name == node.name; });
    snapshot->nodes.push_back(node);
  }
}

bool Replanner::could_use(const SnapshotNode& node) const {
  return inputs_ && inputs_->catalog.gpu_types.contains(node.gpu_type) &&
         inputs_->profiles.usable(node.gpu_type);
}

std::optional<Plan> Replanner::plan_with(std::vector<LiveGpu> gpus, const std::vector<SnapshotNode>& more,
                                         const Plan& previous) const {
  Replanner with = *this;
  for (const SnapshotNode& node : more) {
    with.add_node(node);
    for (const int gpu : node.free_gpus) gpus.push_back({node.name, gpu});
  }
  return with.plan_for(gpus, previous).plan;
}

bool Replanner::better(const Plan& plan, const Plan& than) const {
  const auto ours = objective_of(job_, plan), theirs = objective_of(job_, than);
  if (ours && theirs) return *ours < *theirs * (1 - kWorthWhile);
  return num_ranks(plan) > num_ranks(than);
}

}  // namespace sailor
