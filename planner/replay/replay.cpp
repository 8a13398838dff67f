#include "planner/replay/replay.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <stdexcept>

#include "planner/plan/place.h"
#include "planner/replay/surviving_state.h"
#include "planner/simulator/cost.h"

namespace sailor {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kSameMoment = 1e-9;  // of a step

// A plan and what training with it is like.
struct Course {
  Plan plan;
  double iteration_s = 0;
  PerExpense<double> spent;       // per iteration
  PerExpense<double> idle_per_s;  // while it waits
};

// The best plan for each shape of the cluster; each is searched once.
class Courses {
 public:
  // For an elastic job, or for one that is not.
  Courses(const PlanningContext& context, PlanOptions options, bool elastic)
      : context_(context), job_(context.job), options_(std::move(options)) {
    job_.elastic.enabled = elastic;
    options_.explain = false;
  }

  // Placed on the nodes that are there; nothing when no plan is feasible.
  std::optional<Course> best(const TraceCluster& cluster) {
    const auto [entry, is_new] = by_shape_.try_emplace(cluster.shape());
    if (is_new && !cluster.snapshot().nodes.empty()) entry->second = searched(cluster.snapshot());
    return entry->second ? placed(*entry->second, cluster) : std::nullopt;
  }

  // The same course on these nodes; nothing when they do not hold it.
  static std::optional<Course> placed(Course course, const TraceCluster& cluster) {
    unplace(course.plan);
    try {
      place(course.plan, cluster.snapshot());
    } catch (const std::runtime_error&) {
      return std::nullopt;
    }
    return course;
  }

 private:
  std::optional<Course> searched(const Snapshot& snapshot) const {
    const PlanningContext context{job_, snapshot, context_.catalog, context_.profiles, context_.framework};
    const SearchResult result = search(context, options_);
    if (result.candidates.empty()) return std::nullopt;
    const Candidate& best = result.candidates.front();
    Course course{best.plan, best.prediction.iteration_s, totals(best.prediction.spent), {}};
    for (const Expense expense : kExpenses)
      course.idle_per_s[expense] = idle_per_s(context, expense, best.plan);
    return course;
  }

  const PlanningContext& context_;
  JobSpec job_;
  PlanOptions options_;
  std::map<std::string, std::optional<Course>> by_shape_;
};

// One policy on one trace.
class Run {
 public:
  Run(ReplayPolicy policy, Courses& courses, const JobSpec& job, const ReplayInput& input,
      const ReplayOptions& options)
      : courses_(courses), job_(job), input_(input), options_(options), cluster_(input.cluster()) {
    out_.policy = policy;
    if (policy == ReplayPolicy::full_set) full_set_ = course_of_most();
  }

  ReplayOutcome run() {
    for (const AvailabilityTrace::Change& change : input_.changes) {
      advance(change.at_s);
      if (out_.finished_at_s) break;
      const LostGpus lost = cluster_.change_to(change.count);
      lost_since_.insert(lost.begin(), lost.end());
      react(lost);
    }
    advance(input_.end_s);
    out_.steps = static_cast<int64_t>(std::floor(steps_ + kSameMoment));
    return std::move(out_);
  }

 private:
  bool has(ReplayPolicy policy) const { return out_.policy == policy; }

  std::optional<Course> course_of_most() {
    TraceCluster most = input_.cluster();
    std::vector<int> gpus = input_.changes.front().count;
    for (const AvailabilityTrace::Change& change : input_.changes)
      for (size_t i = 0; i < gpus.size(); ++i) gpus[i] = std::max(gpus[i], change.count[i]);
    most.change_to(gpus);
    return courses_.best(most);
  }

  double change_cost_s() const {
    if (has(ReplayPolicy::no_cost)) return 0;
    return has(ReplayPolicy::elastic) ? options_.reconfigure_s : options_.restart_s;
  }

  void advance(double to_s) {
    if (out_.finished_at_s) return;
    if (!course_) {
      out_.waiting_s += to_s - now_s_;
      now_s_ = to_s;
      return;
    }
    const double changing = std::clamp(ready_s_ - now_s_, 0.0, to_s - now_s_);
    out_.changing_s += changing;
    out_.usd += changing * course_->idle_per_s[Expense::cost];
    now_s_ += changing;
    const double left = static_cast<double>(job_.training.steps) - steps_;
    const double done = std::min((to_s - now_s_) / course_->iteration_s, left);
    steps_ += done;
    out_.trained_s += done * course_->iteration_s;
    out_.usd += done * course_->spent[Expense::cost];
    now_s_ += done * course_->iteration_s;
    checkpoint();
    if (done < left) {
      now_s_ = to_s;
      return;
    }
    out_.finished_at_s = now_s_;
    note(ReplayEvent::What::finished, 0);
  }

  // Those that fell due since the last one.
  void checkpoint() {
    const auto every = options_.checkpoint_steps > 0
                           ? static_cast<double>(options_.checkpoint_steps)
                           : std::max(1.0, std::floor(options_.checkpoint_s / course_->iteration_s));
    saved_ += std::floor((std::floor(steps_ + kSameMoment) - saved_) / every) * every;
  }

  void react(const LostGpus& lost) {
    if (course_ && uses_any(course_->plan, lost)) {
      ++hits_;
      const int64_t steps_lost = stop();
      begin(has(ReplayPolicy::elastic) || has(ReplayPolicy::no_cost) ? ReplayEvent::What::shrunk
                                                                     : ReplayEvent::What::started,
            steps_lost);
    } else if (!course_) {
      begin(ReplayEvent::What::started, 0);
    } else {
      grow_if_it_pays();
    }
  }

  // What there is to run on the cluster as it is now.
  std::optional<Course> possible() {
    if (!has(ReplayPolicy::full_set)) return courses_.best(cluster_);
    return full_set_ ? Courses::placed(*full_set_, cluster_) : std::nullopt;
  }

  // Some of its GPUs are gone. Returns the steps that are lost with them.
  int64_t stop() {
    held_ = std::move(course_->plan);
    const double iteration_s = course_->iteration_s;
    course_.reset();
    return has(ReplayPolicy::no_cost) ? 0 : fall_back(has(ReplayPolicy::elastic), iteration_s);
  }

  // To the last whole step where the state survives, else to the last checkpoint.
  int64_t fall_back(bool may_survive, double iteration_s) {
    const double whole = std::floor(steps_ + kSameMoment);
    const bool survives = may_survive && holds_whole_state(*held_, lost_since_);
    const double kept = survives ? whole : saved_;
    if (!survives) held_.reset();
    const double lost_s = std::min((steps_ - kept) * iteration_s, out_.trained_s);
    out_.lost_s += lost_s;
    out_.trained_s -= lost_s;
    last_iteration_s_ = iteration_s;
    const auto steps_lost = static_cast<int64_t>(whole - kept);
    out_.lost_steps += steps_lost;
    steps_ = kept;
    return steps_lost;
  }

  void begin(ReplayEvent::What what, int64_t steps_lost) {
    // GPUs that held the state while the job waited may have gone meanwhile.
    if (held_ && has(ReplayPolicy::elastic)) steps_lost += fall_back(true, last_iteration_s_);
    std::optional<Course> next = possible();
    if (!next) return note(ReplayEvent::What::waiting, steps_lost);
    run_on(std::move(*next), what, steps_lost);
  }

  void run_on(Course next, ReplayEvent::What what, int64_t steps_lost) {
    course_ = std::move(next);
    held_.reset();
    lost_since_.clear();
    ready_s_ = now_s_ + (was_started_ ? change_cost_s() : 0);
    if (was_started_) ++out_.changes;
    was_started_ = true;
    note(what, steps_lost);
  }

  void grow_if_it_pays() {
    const std::optional<Course> next = possible();
    if (!next || !pays(*next)) return note(ReplayEvent::What::kept, 0);
    // Between two steps, with all its GPUs: a job that restarts saves first.
    saved_ = std::floor(steps_ + kSameMoment);
    run_on(*next,
           num_ranks(next->plan) > num_ranks(course_->plan) ? ReplayEvent::What::grown
                                                            : ReplayEvent::What::moved,
           0);
  }

  // Until the next loss, going by those so far, or the job's end.
  bool pays(const Course& next) const {
    const double calm_s = (now_s_ + options_.expected_calm_s) / static_cast<double>(hits_ + 1);
    const double left_s = (static_cast<double>(job_.training.steps) - steps_) * course_->iteration_s;
    const double horizon_s = std::min(calm_s, left_s);
    if (const std::optional<Expense> expense = job_.objective.expense()) {
      const double steps = horizon_s / course_->iteration_s;
      return steps * next.spent[*expense] + change_cost_s() * next.idle_per_s[*expense] <
             steps * course_->spent[*expense] * (1 - kSameMoment);
    }
    return (horizon_s - change_cost_s()) / next.iteration_s >
           horizon_s / course_->iteration_s * (1 + kSameMoment);
  }

  void note(ReplayEvent::What what, int64_t steps_lost) {
    int gpus = 0;
    for (const SnapshotNode& node : cluster_.snapshot().nodes)
      gpus += static_cast<int>(node.free_gpus.size());
    out_.events.push_back({now_s_, gpus, what, steps_lost, course_ ? course_->iteration_s : 0,
                           course_ ? summary(course_->plan) : ""});
  }

  Courses& courses_;
  const JobSpec& job_;
  const ReplayInput& input_;
  const ReplayOptions& options_;
  TraceCluster cluster_;
  ReplayOutcome out_;
  std::optional<Course> full_set_, course_;
  std::optional<Plan> held_;  // whose ranks still hold the state while nothing runs
  LostGpus lost_since_;       // since the plan began
  double now_s_ = 0, ready_s_ = 0, steps_ = 0, saved_ = 0, last_iteration_s_ = 0;
  int hits_ = 0;
  bool was_started_ = false;
};

}  // namespace

const char* to_string(ReplayPolicy policy) {
  switch (policy) {
    case ReplayPolicy::elastic:
      return "elastic";
    case ReplayPolicy::restart:
      return "restart";
    case ReplayPolicy::full_set:
      return "full-set";
    case ReplayPolicy::no_cost:
      return "no-cost";
  }
  return "?";
}

const char* to_string(ReplayEvent::What what) {
  switch (what) {
    case ReplayEvent::What::started:
      return "started";
    case ReplayEvent::What::grown:
      return "grown";
    case ReplayEvent::What::shrunk:
      return "shrunk";
    case ReplayEvent::What::moved:
      return "moved";
    case ReplayEvent::What::kept:
      return "kept";
    case ReplayEvent::What::waiting:
      return "waiting";
    case ReplayEvent::What::finished:
      return "finished";
  }
  return "?";
}

std::vector<ReplayOutcome> replay(const PlanningContext& context, const PlanOptions& options,
                                  const ReplayInput& input, const ReplayOptions& costs,
                                  const std::vector<ReplayPolicy>& policies) {
  Courses of_elastic(context, options, true), of_others(context, options, false);
  std::vector<ReplayOutcome> outcomes;
  for (ReplayPolicy policy : policies)
    outcomes.push_back(
        Run(policy, policy == ReplayPolicy::elastic ? of_elastic : of_others, context.job, input, costs)
            .run());
  return outcomes;
}

}  // namespace sailor
