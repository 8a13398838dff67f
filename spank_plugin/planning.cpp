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
#include "planner/simulator/host_memory.h"
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

// The wishes within the limit of QOS and associations on nodes.
NodeWishes within_limits(NodeWishes wishes, const LiveCluster& live) {
  const std::optional<int> most = live.max_nodes();
  if (!most) return wishes;
  if (*most == 0) throw Refusal(kInfeasible, live.limits.at("node").reason);
  wishes.max_nodes = std::min(wishes.max_nodes.value_or(*most), *most);
  return wishes;
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

// The GPUs of a job are numbered from 0 on each shared node, whichever Slurm chooses.
void number_gpus_of_job(Plan& plan, const Snapshot& snapshot) {
  std::map<std::string, std::map<int, int>> number;  // by node: index in the snapshot -> in the job
  for (const PlanPipeline& pipeline : plan.pipelines)
    for (const PlanStage& stage : pipeline.stages)
      for (const int gpu : stage.gpus) number[stage.node][gpu] = 0;
  for (auto& [node, gpus] : number) {
    int next = 0;
    for (auto& [gpu, in_job] : gpus) in_job = next++;
  }
  for (PlanPipeline& pipeline : plan.pipelines)
    for (PlanStage& stage : pipeline.stages) {
      const SnapshotNode* node = snapshot.find(stage.node, stage.gpu_type);
      if (node == nullptr || !node->shared) continue;
      for (int& gpu : stage.gpus) gpu = number[stage.node][gpu];
    }
}

// Nodes with less free memory than the ranks of a plan need.
struct ShortOfMemory {
  std::map<std::string, int> most_ranks;  // that have room, by node
  std::vector<std::string> reasons;

  void limit(Snapshot& snapshot) const {
    for (const auto& [name, most] : most_ranks) {
      int left = most;
      for (SnapshotNode& node : snapshot.nodes) {
        if (node.name != name) continue;
        node.free_gpus.resize(std::min(node.free_gpus.size(), static_cast<size_t>(left)));
        left -= static_cast<int>(node.free_gpus.size());
      }
    }
    std::erase_if(snapshot.nodes, [](const SnapshotNode& node) { return node.free_gpus.empty(); });
    snapshot.not_free.insert(snapshot.not_free.begin(), reasons.begin(), reasons.end());
  }
};

// Host memory of a rank by GPU type, the same for all of a type as in the request: what the largest needs,
// and in an elastic job what it may need later, up to its GPU's part of what is free on every node.
std::map<std::string, int64_t> memory_of_ranks(const PlanningInputs& inputs, const Plan& plan,
                                               ShortOfMemory& short_of) {
  std::map<std::string, HostMemory> needed;                 // by type
  std::map<std::string, int64_t> share;                     // the same
  std::map<std::string, std::map<std::string, int>> ranks;  // by node and type
  for (const StagePrediction& predicted : simulate(inputs.context(), plan).stages) {
    const PlanPipeline& pipeline = plan.pipelines[static_cast<size_t>(predicted.pipeline)];
    if (predicted.stage >= num_groups(plan, pipeline)) continue;  // on the GPUs of another entry
    const PlanStage& stage = pipeline.stages[static_cast<size_t>(predicted.stage)];
    const SnapshotNode* node = inputs.snapshot.find(stage.node, stage.gpu_type);
    if (node == nullptr || !node->shared || node->host.memory_bytes == 0) continue;
    HostMemory host = host_memory(inputs.job, predicted.memory, predicted.capacity_bytes,
                                  inputs.catalog.at(stage.gpu_type).on_processors);
    if (const auto of_site = inputs.site.memory_per_rank_bytes) host = {*of_site, *of_site};
    HostMemory& of_type = needed[stage.gpu_type];
    of_type.least_bytes = std::max(of_type.least_bytes, host.least_bytes);
    of_type.most_bytes = std::max(of_type.most_bytes, host.most_bytes);
    const int64_t here = node->host.memory_bytes / static_cast<int64_t>(node->free_gpus.size());
    int64_t& least_share = share.emplace(stage.gpu_type, here).first->second;
    least_share = std::min(least_share, here);
    ranks[stage.node][stage.gpu_type] += stage.shape.gpus();
  }
  constexpr double kGiB = 1024.0 * 1024 * 1024;
  for (const auto& [name, by_type] : ranks) {
    const int64_t free = inputs.snapshot.find(name)->host.memory_bytes;
    int64_t together = 0, largest = 1;
    int count = 0;
    for (const auto& [type, of_type] : by_type) {
      together += of_type * needed[type].least_bytes;
      largest = std::max(largest, needed[type].least_bytes);
      count += of_type;
    }
    if (together <= free) continue;
    short_of.most_ranks[name] = std::min(count - 1, static_cast<int>(free / largest));
    short_of.reasons.push_back(fmt::format("{}: {:.1f} GiB of memory free, {} ranks need {:.1f}", name,
                                           static_cast<double>(free) / kGiB, count,
                                           static_cast<double>(together) / kGiB));
  }
  std::map<std::string, int64_t> memory;
  for (const auto& [type, host] : needed)
    memory[type] = std::max(host.least_bytes, std::min(host.most_bytes, share[type]));
  return memory;
}

// What the components ask for, by TRES. Of whole nodes Slurm counts more.
std::map<std::string, int64_t> requested(const std::vector<Component>& components) {
  std::map<std::string, int64_t> sum;
  for (const Component& component : components) {
    ++sum["job"];
    sum["cpu"] += int64_t{component.tasks} * component.cpus_per_task;
    sum["mem"] += component.memory_mb *
                  (component.per_rank ? component.tasks : static_cast<int64_t>(component.nodes.size()));
  }
  return sum;
}

// The components within the limits of QOS and associations: with fewer processors for a rank than its share,
// if these are limited.
std::vector<Component> allocate_within(const Plan& plan, const LiveCluster& live, RankRequest request) {
  std::vector<Component> components = allocate(plan, live, request);
  const auto cpus = live.limits.find("cpu");
  if (cpus != live.limits.end() && !request.cpus && requested(components)["cpu"] > cpus->second.most) {
    request.cpus = std::max(1, cpus->second.most / num_ranks(plan));
    components = allocate(plan, live, request);
  }
  for (const auto& [tres, count] : requested(components)) {
    const auto limit = live.limits.find(tres);
    const bool waits = tres == "job";  // until other jobs have ended
    if (limit == live.limits.end() || count <= (waits ? limit->second.ever : limit->second.most)) continue;
    throw Refusal(kInfeasible,
                  fmt::format("{}, the plan needs {}{}", limit->second.reason, count,
                              waits ? ", one for each partition: choose one with --partition" : ""));
  }
  return components;
}

void finish_plan(const SubmitOptions& options, const PlanningInputs& inputs, const LiveCluster& live,
                 const NodeWishes& wishes, const RankRequest& request, PlannedJob& planned) {
  for (const std::string& note : inputs.notes) planned.table += "note: " + note + "\n";
  planned.components = allocate_within(planned.plan, live, request);
  planned.shape = shape_of(planned.components, live, !wishes.features.empty());
  number_gpus_of_job(planned.plan, live.snapshot);
  planned.comment = comment_of(planned.plan);
  planned.planning = planning_files(inputs, request_of(options));
  planned.site_config = std::filesystem::absolute(inputs.site.file).lexically_normal().string();
}

}  // namespace

PlannedJob plan_job(const SubmitOptions& options, JobSpec job, const SiteConfig& site,
                    const NodeWishes& wishes, const ClusterSource& cluster,
                    const std::optional<PlannedStart>& start) {
  for (ShortOfMemory short_of;;) {
    LiveCluster live;
    PlanningInputs inputs = load_inputs(job, site, options.overrides, [&](const SiteConfig&) {
      live = cluster();
      short_of.limit(live.snapshot);
      return live.snapshot;
    });
    if (inputs.snapshot.nodes.empty()) throw Refusal(kInfeasible, nothing_free(inputs.snapshot));
    inputs.notes.insert(inputs.notes.end(), live.notes.begin(), live.notes.end());
    const NodeWishes allowed = within_limits(wishes, live);
    PlannedJob planned = options.plan_file.empty() ? search_plan(options, allowed, inputs, live.now, start)
                                                   : use_given_plan(options, allowed, inputs);
    RankRequest request{wishes.cpus_per_rank ? wishes.cpus_per_rank : inputs.site.cpus_per_rank,
                        wishes.cpus_per_rank.has_value(), wishes.memory_is_given};
    const size_t known = short_of.reasons.size();
    if (!wishes.memory_is_given) request.memory_bytes = memory_of_ranks(inputs, planned.plan, short_of);
    if (short_of.reasons.size() > known) {
      if (options.plan_file.empty()) continue;  // on fewer GPUs
      throw Refusal(kInfeasible,
                    fmt::format("{}: cannot start now: {}", options.plan_file, short_of.reasons.front()));
    }
    finish_plan(options, inputs, live, wishes, request, planned);
    return planned;
  }
}

}  // namespace sailor
