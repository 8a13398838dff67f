#include "spank_plugin/start_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "planner/inputs/load_inputs.h"
#include "planner/inputs/search_request.h"
#include "planner/report/start_report.h"
#include "planner/start/choose_start.h"
#include "spank_plugin/node_choice.h"

namespace sailor {
namespace {

constexpr size_t kMostAnswers = 4;  // of Slurm, one RPC each

// Are there starts to choose from?
bool has_choice(const SubmitOptions& options, const JobSpec& job, const NodeWishes& wishes,
                const LiveCluster& cluster) {
  if (!options.choose_start || !options.plan_file.empty() || wishes.include_busy || job.training.steps <= 0)
    return false;
  // Jobs that wait may be about to get the free nodes.
  const bool contended = !cluster.snapshot.busy.empty() || !cluster.snapshot.queue.empty();
  return !options.deadline.empty() || (contended && options.most_wait_s != 0.0);
}

// The inputs for plans on free and busy nodes. Their snapshot has the nodes that are free, and those in use.
PlanningInputs inputs_with_busy(const SubmitOptions& options, const JobSpec& job, const SiteConfig& site,
                                const Snapshot& snapshot) {
  PlanningInputs inputs = load_inputs(job, site, options.overrides, [&](const SiteConfig&) {
    Snapshot all = snapshot;
    for (const BusyNode& busy : snapshot.busy) all.nodes.push_back(busy.node);
    all.busy.clear();
    return all;
  });
  const Snapshot usable = std::move(inputs.snapshot);  // without unknown GPU types
  inputs.snapshot = usable;
  inputs.snapshot.nodes.clear();
  for (const SnapshotNode& node : usable.nodes) {
    const auto busy = std::find_if(snapshot.busy.begin(), snapshot.busy.end(),
                                   [&](const BusyNode& other) { return other.node.name == node.name; });
    if (busy == snapshot.busy.end())
      inputs.snapshot.nodes.push_back(node);
    else
      inputs.snapshot.busy.push_back({node, busy->state, busy->free_in_s, busy->jobs_end_in_s});
  }
  return inputs;
}

class StartChooser {
 public:
  StartChooser(const PlanningInputs& inputs, PlanOptions options, const NodeWishes& wishes,
               const AskSlurm& ask)
      : inputs_(inputs), options_(std::move(options)), wishes_(wishes), ask_(ask) {
    options_.top_k = 1;
    options_.explain = false;
  }

  StartChoice choose(StartQuestion question) {
    constexpr double kNowShare = 0.5;
    question.effort_s = std::min(question.effort_s, options_.time_limit_s / 2);
    SearchResult now;
    if (!inputs_.snapshot.nodes.empty()) now = plan(inputs_.snapshot, kNowShare * question.effort_s);
    return choose_start(
        inputs_.snapshot, now, question,
        [this](const Snapshot& nodes, double effort_s) { return plan(nodes, effort_s); },
        [&](const StartOption& option) { return wait_of(option, question.by_name); });
  }

 private:
  SearchResult plan(const Snapshot& snapshot, double effort_s) {
    constexpr size_t kMostChoices = 8;
    const auto most =
        static_cast<size_t>(wishes_.max_nodes.value_or(static_cast<int>(snapshot.nodes.size())));
    const NodeChoices choices = snapshot.nodes.size() > most
                                    ? choose_nodes(snapshot, static_cast<int>(most), kMostChoices)
                                    : NodeChoices{{snapshot}, true};
    options_.effort_limit_s = effort_s / static_cast<double>(choices.snapshots.size());
    std::optional<SearchResult> best;
    for (const Snapshot& nodes : choices.snapshots) {
      SearchResult result = search(inputs_.context(nodes), options_);
      best = best ? better_of(std::move(*best), std::move(result), inputs_.job.objective) : std::move(result);
    }
    return std::move(*best);
  }

  // The estimate, or Slurm's answer if that is so late that it knows more than limits. It ignores the queue.
  std::optional<double> wait_of(const StartOption& option, bool by_name) {
    std::map<std::string, std::vector<std::string>> by_partition;
    for (const std::string& name : node_names(option.candidate.plan))
      by_partition[option.snapshot.find(name)->partition].push_back(name);
    if (answers_ + by_partition.size() > kMostAnswers) return std::nullopt;
    double wait_s = option.start.wait_s;
    for (const auto& [partition, nodes] : by_partition) {
      ++answers_;
      const auto limit_s = option.least_s > 0 ? std::optional(option.least_s) : std::nullopt;
      const std::optional<int64_t> start =
          ask_(partition, by_name ? nodes : alike(nodes), nodes.size(), limit_s);
      if (!start) return std::nullopt;
      const auto slurm_s = static_cast<double>(*start - inputs_.snapshot.time_s.value_or(*start));
      constexpr double kLate = 2, kLate_s = 60;
      if (slurm_s > kLate * option.start.wait_s + kLate_s && !is_end_of_job(slurm_s))
        wait_s = std::max(wait_s, slurm_s);
    }
    return wait_s;
  }

  // To answer, Slurm lets running jobs end one after the other, but looks only now and then whether the new
  // job fits: then the answer is the end of a later one. The estimate knows these ends.
  bool is_end_of_job(double time_s) const {
    constexpr double kSame_s = 2;
    return std::any_of(inputs_.snapshot.busy.begin(), inputs_.snapshot.busy.end(), [&](const BusyNode& busy) {
      const std::optional<double> end_s = busy.free_in_s ? busy.free_in_s : busy.jobs_end_in_s;
      return end_s && std::abs(*end_s - time_s) <= kSame_s;
    });
  }

  // The nodes of the partition that are of the same kinds as these.
  std::vector<std::string> alike(const std::vector<std::string>& names) const {
    const auto kind = [](const SnapshotNode& node) {
      return std::tuple(node.partition, node.zone, node.gpu_type, node.gpus);
    };
    std::set<std::tuple<std::string, std::string, std::string, int>> kinds;
    std::set<std::string> all;
    const auto each = [&](const auto& visit) {
      for (const SnapshotNode& node : inputs_.snapshot.nodes) visit(node);
      for (const BusyNode& busy : inputs_.snapshot.busy) visit(busy.node);
    };
    each([&](const SnapshotNode& node) {
      if (std::find(names.begin(), names.end(), node.name) != names.end()) kinds.insert(kind(node));
    });
    each([&](const SnapshotNode& node) {
      if (kinds.contains(kind(node))) all.insert(node.name);
    });
    return {all.begin(), all.end()};
  }

  const PlanningInputs& inputs_;
  PlanOptions options_;
  const NodeWishes& wishes_;
  const AskSlurm& ask_;
  size_t answers_ = 0;
};

SearchRequest request_for(const SubmitOptions& options) {
  SearchRequest request;
  request.time_limit_s = options.time_limit_s;
  request.effort = options.effort;
  return request;
}

[[noreturn]] void refuse_late(const SubmitOptions& options, const StartChoice& choice,
                              const Snapshot& snapshot) {
  throw Refusal(kInfeasible, fmt::format("no plan ends by {} (--sailor-deadline); the earliest: {}",
                                         options.deadline, starts_text({choice.options.front()}, snapshot)));
}

}  // namespace

PlannedJob plan_with_start(const SubmitOptions& options, const JobSpec& job, const SiteConfig& site,
                           const NodeWishes& wishes, std::optional<double> length_s,
                           const WishedCluster& cluster, const AskSlurm& ask) {
  const LiveCluster live = cluster(wishes);
  const auto on_free_nodes = [&] {
    std::optional<PlannedStart> now;
    if (options.choose_start && !wishes.include_busy) now.emplace();
    return plan_job(
        options, job, site, wishes, [&] { return live; }, now);
  };
  if (!has_choice(options, job, wishes, live)) return on_free_nodes();
  const PlanningInputs inputs = inputs_with_busy(options, job, site, live.snapshot);
  StartQuestion question = start_question(inputs.job, site);
  question.length_s = length_s;
  question.most_wait_s = options.most_wait_s;
  question.by_name = options.pin || !wishes.only_nodes.empty();
  if (question.by_name) question.queues = false;
  // A limit that proves too short costs a chain no step.
  question.shortens = options.chain && !job.checkpoint.directory.empty() && wishes.time_limit_s &&
                      !wishes.least_time_is_given;
  if (!options.deadline.empty())
    question.deadline_s = static_cast<double>(parse_deadline(options.deadline, live.now) - live.now);
  NodeWishes allowed = wishes;
  if (const std::optional<int> most = live.max_nodes())
    allowed.max_nodes = std::min(wishes.max_nodes.value_or(*most), *most);
  StartChooser chooser(inputs, plan_options(request_for(options), site), allowed, ask);
  const StartChoice choice = chooser.choose(question);
  if (choice.options.empty()) return on_free_nodes();  // or says why there is no plan
  if (!choice.in_time) refuse_late(options, choice, inputs.snapshot);
  const StartOption& best = choice.options.front();
  const bool waits = best.start.wait_s > 0;
  PlannedJob planned;
  if (waits || question.deadline_s) {
    NodeWishes chosen = wishes;
    chosen.only_nodes = node_names(best.candidate.plan);
    chosen.include_busy = waits;
    planned = plan_job(
        options, job, site, chosen, [&] { return cluster(chosen); }, best.start);
  } else {
    planned = on_free_nodes();
  }
  planned.waits = waits;
  planned.queued = best.queued;
  if (waits && planned.components.size() == 1) planned.least_s = best.least_s;
  if (choice.options.size() > 1 || waits)
    planned.table += fmt::format("starts: {}\n", starts_text(choice.options, inputs.snapshot));
  return planned;
}

}  // namespace sailor
