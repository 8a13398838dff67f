#include "planner/start/choose_start.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "planner/start/start_times.h"

namespace sailor {
namespace {

constexpr size_t kNextTimes = 3;
constexpr double kLeastEarlier_s = 60, kSameShare = 0.02;  // predictions are no better than that
constexpr double kUnsure = 1.1;
constexpr double kNever_s = std::numeric_limits<double>::infinity();

// Collects options: searches on sets of nodes, as long as they can be better than the best so far.
class Options {
 public:
  Options(const Snapshot& snapshot, const SearchResult& now, const StartQuestion& question,
          const ShortSearch& plan)
      : snapshot_(snapshot), question_(question), plan_(plan), times_(snapshot, question.length_s) {
    if (now.status != SearchStatus::found) return;
    // Idle nodes that older waiting jobs did not get are free; new ones may be about to get them.
    const bool any_new = std::any_of(snapshot.queue.begin(), snapshot.queue.end(),
                                     [](const WaitingJob& job) { return job.is_new; });
    const Candidate& best = now.candidates.front();
    const auto wait_s = any_new ? wait_for(best) : std::nullopt;
    add(best, snapshot, wait_s.value_or(0));
    if (wait_s.value_or(0) > 0) return;
    starts_and_grows_ = question.grows && !question.deadline_s;
  }

  std::vector<StartOption> collect() {
    for (const double wait_s : times_.next_times(kNextTimes)) search({wait_s, times_.free_at(wait_s)});
    for (const std::vector<size_t>& kind : times_.kinds()) grow(kind);
    return std::move(options_);
  }

 private:
  // 1, 2, 4, ... nodes of one kind.
  void grow(const std::vector<size_t>& kind) {
    double least_run_s = 0;  // of twice the nodes, if twice as many are at most twice as fast
    for (size_t count = 1;; count = std::min(2 * count, kind.size())) {
      const auto slot = times_.earliest(kind, count, shortest_s());
      if (!slot || beyond(slot->wait_s)) return;
      const bool all_free = std::all_of(slot->nodes.begin(), slot->nodes.end(),
                                        [&](size_t node) { return node < snapshot_.nodes.size(); });
      const bool covered = slot->wait_s == 0 && all_free && !question_.deadline_s && !options_.empty();
      if (!covered && slot->wait_s + least_run_s < best_end_s_)
        if (const std::optional<double> run_s = search(*slot)) least_run_s = *run_s / 2;
      if (count == kind.size()) return;
    }
  }

  // Returns the run time of the best plan.
  std::optional<double> search(const StartTimes::Slot& slot) {
    if (beyond(slot.wait_s) || slot.nodes.empty() || !searched_.insert(slot.nodes).second)
      return std::nullopt;
    if (starts_and_grows_ && std::none_of(slot.nodes.begin(), slot.nodes.end(),
                                          [&](size_t node) { return times_.contested(node); }))
      return std::nullopt;  // it gets them while it runs
    Snapshot then = snapshot_;
    then.nodes.clear();
    then.busy.clear();
    for (const size_t node : slot.nodes) then.nodes.push_back(*times_.nodes()[node]);
    constexpr double kShares = 16;
    const SearchResult result = plan_(then, question_.effort_s / kShares);
    if (result.status != SearchStatus::found || result.candidates.empty()) return std::nullopt;
    const Candidate& best = result.candidates.front();
    constexpr double kAtOnce_s = 1;  // idle nodes that are planned for others later
    const double wait_s = wait_for(best).value_or(slot.wait_s);
    const std::vector<std::string> names = node_names(best.plan);
    const bool free = std::all_of(names.begin(), names.end(),
                                  [&](const std::string& name) { return snapshot_.find(name) != nullptr; });
    return add(best, std::move(then), free ? wait_s : std::max(wait_s, kAtOnce_s));
  }

  double add(const Candidate& candidate, Snapshot snapshot, double wait_s) {
    StartOption option;
    option.candidate = candidate;
    option.run_s = run_s(candidate);
    option.least_s = least_s(candidate).value_or(0);
    option.usd = static_cast<double>(question_.steps) * candidate.prediction.total(Expense::cost);
    option.start = {wait_s, wait_s > 0 ? StartSource::limits : StartSource::free_now};
    for (const std::string& name : node_names(candidate.plan)) {
      ++option.nodes;
      if (const SnapshotNode* node = snapshot.find(name)) option.gpu_s += node->gpus * option.run_s;
    }
    option.snapshot = std::move(snapshot);
    const bool fits = option.run_s <= question_.length_s.value_or(kNever_s);
    if (!question_.deadline_s && fits) best_end_s_ = std::min(best_end_s_, option.end_s());
    options_.push_back(std::move(option));
    return options_.back().run_s;
  }

  std::optional<double> wait_for(const Candidate& candidate) const {
    const std::vector<std::string> names = node_names(candidate.plan);
    return question_.by_name ? times_.wait_for(names, least_s(candidate))
                             : times_.wait_for_alike(names, least_s(candidate));
  }

  double run_s(const Candidate& candidate) const {
    return static_cast<double>(question_.steps) * candidate.prediction.iteration_s;
  }
  // The length of its job, if that may be less than the time limit.
  std::optional<double> least_s(const Candidate& candidate) const {
    const double least_s = least_limit_s(run_s(candidate));
    return question_.shortens && least_s < question_.length_s.value_or(kNever_s) ? std::optional(least_s)
                                                                                 : std::nullopt;
  }
  std::optional<double> shortest_s() const {
    return question_.shortens ? std::optional(least_limit_s(0)) : std::nullopt;
  }

  bool beyond(double wait_s) const {
    if (wait_s >= best_end_s_ || wait_s > question_.most_wait_s.value_or(kNever_s)) return true;
    return !options_.empty() && wait_s > question_.deadline_s.value_or(kNever_s);
  }

  const Snapshot& snapshot_;
  const StartQuestion& question_;
  const ShortSearch& plan_;
  const StartTimes times_;
  std::set<std::vector<size_t>> searched_;
  std::vector<StartOption> options_;
  bool starts_and_grows_ = false;  // a plan starts now, and can take nodes later
  double best_end_s_ = kNever_s;   // options that end later are not searched for
};

double expected_end_s(const StartOption& option) {
  const bool unsure = option.asked && option.start.source == StartSource::limits;
  return option.start.wait_s * (unsure ? kUnsure : 1) + option.run_s;
}

// Drops options that need more than the one that starts now, or, without one, than the cheapest.
void drop_expensive(std::vector<StartOption>& options, Objective objective) {
  const auto value = [&](const StartOption& option) {
    return objective.value(option.candidate.prediction.figures());
  };
  double most = kNever_s;
  for (const StartOption& option : options) {
    if (option.start.wait_s == 0) most = std::min(most, value(option));
  }
  if (most == kNever_s) {
    for (const StartOption& option : options) most = std::min(most, value(option));
  }
  std::erase_if(options, [&](const StartOption& option) { return value(option) > most; });
}

// Drops options that would reach the time limit, unless all do.
void drop_too_long(std::vector<StartOption>& options, std::optional<double> length_s) {
  const auto too_long = [&](const StartOption& option) { return option.run_s > length_s.value_or(kNever_s); };
  if (!std::all_of(options.begin(), options.end(), too_long)) std::erase_if(options, too_long);
}

// The option that starts now, if the job may start with it and queue for the nodes of others.
std::optional<StartOption> start_to_queue_from(const std::vector<StartOption>& options,
                                               const StartQuestion& question) {
  if (!question.queues || question.objective.expense() || question.deadline_s) return std::nullopt;
  const auto now = std::find_if(options.begin(), options.end(),
                                [](const StartOption& option) { return option.start.wait_s == 0; });
  if (now == options.end()) return std::nullopt;
  // A limit that proves too short costs nothing only where another job continues.
  if (now->run_s > question.length_s.value_or(kNever_s) && !question.shortens) return std::nullopt;
  return *now;
}

// The same option with the nodes of the one that waits. Nothing if it does not pay.
std::optional<StartOption> queueing(StartOption now, const StartOption& later) {
  const auto nodes_of = [](const StartOption& option) {
    std::vector<const SnapshotNode*> nodes;
    for (const std::string& name : node_names(option.candidate.plan))
      if (const SnapshotNode* node = option.snapshot.find(name)) nodes.push_back(node);
    return nodes;
  };
  now.queued = queued_nodes(nodes_of(later), nodes_of(now));
  if (later.run_s < kSameShare * now.run_s) return std::nullopt;
  // What is done by then need not be done later.
  const double left = 1 - later.start.wait_s / now.run_s;
  now.run_s = std::min(now.run_s, later.start.wait_s + std::max(0.0, left) * later.run_s);
  now.least_s = 0;
  if (now.queued.empty() || now.end_s() + kLeastEarlier_s > later.end_s()) return std::nullopt;
  return now;
}

// The option to take, by the starts as they are known.
size_t best_of(const std::vector<StartOption>& options, const StartQuestion& question) {
  const auto late = [&](const StartOption& option) {
    return question.deadline_s && expected_end_s(option) > *question.deadline_s;
  };
  const bool priced =
      std::all_of(options.begin(), options.end(), [](const StartOption& option) { return option.usd > 0; });
  size_t first = 0;  // that ends first
  for (size_t i = 1; i < options.size(); ++i)
    if (expected_end_s(options[i]) < expected_end_s(options[first])) first = i;
  if (late(options[first])) return first;
  const double end_s = expected_end_s(options[first]);
  size_t best = first;
  for (size_t i = 0; i < options.size(); ++i) {
    const StartOption& option = options[i];
    if (question.deadline_s) {
      const auto price = [&](const StartOption& of) { return priced ? of.usd : of.gpu_s; };
      if (!late(option) && price(option) < price(options[best])) best = i;
      continue;
    }
    const double other_s = expected_end_s(option);
    if (other_s > std::max(end_s * (1 + kSameShare), end_s + kLeastEarlier_s)) continue;
    const bool now = option.start.wait_s == 0, best_now = options[best].start.wait_s == 0;
    if (now != best_now ? now : option.gpu_s < options[best].gpu_s) best = i;
  }
  return best;
}

}  // namespace

StartChoice choose_start(const Snapshot& snapshot, const SearchResult& now, const StartQuestion& question,
                         const ShortSearch& plan, const AskScheduler& ask) {
  StartChoice choice;
  std::vector<StartOption>& options = choice.options;
  options = Options(snapshot, now, question, plan).collect();
  if (question.objective.expense() && !question.deadline_s) drop_expensive(options, question.objective);
  const std::optional<StartOption> now_option = start_to_queue_from(options, question);
  drop_too_long(options, question.length_s);
  if (options.empty()) return choice;
  size_t best = best_of(options, question);
  for (size_t asked = 0; asked < question.most_questions; ++asked) {
    StartOption& option = options[best];
    if (option.start.source != StartSource::limits || option.asked) break;
    option.asked = true;
    if (const std::optional<double> wait_s = ask(option)) option.start = {*wait_s, StartSource::scheduler};
    best = best_of(options, question);
  }
  std::swap(options[0], options[best]);
  std::sort(options.begin() + 1, options.end(),
            [](const StartOption& a, const StartOption& b) { return a.end_s() < b.end_s(); });
  if (now_option && options[0].start.wait_s > 0)
    if (std::optional<StartOption> both = queueing(*now_option, options[0]))
      options.insert(options.begin(), std::move(*both));
  choice.in_time = !question.deadline_s || options[0].end_s() <= *question.deadline_s;
  return choice;
}

StartQuestion start_question(const JobSpec& job, const SiteConfig& site) {
  StartQuestion question{.steps = job.training.steps, .objective = job.objective};
  question.grows = job.elastic.enabled && job.elastic.grow_every_s > 0 && site.jobs_may_grow;
  // Helper jobs of another partition or QOS do not wait as this job would.
  question.queues = question.grows && site.grow_partition.empty() && site.grow_qos.empty();
  return question;
}

double least_limit_s(double run_s) {
  constexpr double kSlower = 1.25, kLeast_s = 900, kMinute_s = 60;
  return std::ceil(std::max(kSlower * run_s, run_s + kLeast_s) / kMinute_s) * kMinute_s;
}

std::vector<std::string> node_names(const Plan& plan) {
  std::set<std::string> names;
  for (const PlanPipeline& pipeline : plan.pipelines)
    for (const PlanStage& stage : pipeline.stages) names.insert(stage.node);
  return {names.begin(), names.end()};
}

}  // namespace sailor
