#include "planner/search/pareto.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <stdexcept>
#include <tuple>

#include "planner/process/seconds_since.h"
#include "planner/search/problem/goal.h"

namespace sailor {
namespace {

// Plans that differ by less than this are the same: sums of floating-point numbers in another order.
constexpr double kSame = 1e-9;
// The fastest point is the plan of a search for throughput, unless another search finds one that is faster by
// more than this.
constexpr double kHardlyFaster = 0.01;
// A hole narrower than this, in cost or in time, is not worth a search.
constexpr double kNarrow = 2e-3;
// Of the time that is left, what the refinement of an end may take.
constexpr double kShareOfEnds = 0.25;

constexpr size_t kNearest = 2;  // known plans from which a search within a limit starts

constexpr double kAny = std::numeric_limits<double>::infinity();  // no limit

// Costs between two neighbours of the front without a searched budget: above `above`, below the more
// expensive neighbour.
struct Hole {
  double above;
  double dear;
  double slow_s, fast_s;

  double budget() const { return std::sqrt(above * dear); }
  // How much of the picture, drawn with logarithmic axes, is still unknown here.
  double area() const {
    if (!(above > 0) || dear <= above * (1 + kNarrow) || slow_s <= fast_s * (1 + kNarrow)) return 0;
    return std::log(dear / above) * std::log(slow_s / fast_s);
  }
};

class Front {
 public:
  Front(const PlanningContext& context, const PlanOptions& options, int points, double time_limit_s)
      : context_(context),
        options_(options),
        expense_(context.job.objective.expense().value_or(Expense::cost)),
        most_points_(static_cast<size_t>(points)),
        time_limit_s_(time_limit_s),
        started_(std::chrono::steady_clock::now()) {}

  ParetoFront run() {
    front_.complete = true;
    front_.expense = expense_;
    const auto& limits = context_.job.constraints;
    // The two ends are the plans that searches for them alone would choose.
    const SearchResult fastest = ask(Objective::throughput, limits, left_s(), true);
    front_.status = fastest.status;
    front_.reason = fastest.reason;
    front_.bound_iteration_s = fastest.bound_iteration_s;
    if (fastest.status != SearchStatus::found) return std::move(front_);
    const SearchResult cheapest = ask(expense_, limits, left_s(), false);
    front_.bound = cheapest.bound[expense_];
    if (fastest.bound_iteration_s) time_bounds_.push_back({kAny, *fastest.bound_iteration_s});
    if (cheapest.bound[expense_]) cost_bounds_.push_back({kAny, *cheapest.bound[expense_]});
    ends_known_ = true;
    refine_ends();
    fill_holes();
    choose();
    return std::move(front_);
  }

 private:
  double left_s() const {
    const double elapsed_s = seconds_since(started_);
    return time_limit_s_ - elapsed_s;
  }

  // The best known plans within the limits, by value.
  std::map<double, const Plan*> nearest(const Goal& goal) const {
    std::map<double, const Plan*> out;
    for (const Candidate& candidate : pool_)
      if (const double value = goal.allowed_value(candidate.prediction.figures()); value < kNever)
        out[value] = &candidate.plan;
    while (out.size() > kNearest) out.erase(std::prev(out.end()));
    return out;
  }

  SearchResult ask(Objective objective, const ConstraintSpec& limits, double time_s, bool explain) {
    JobSpec job = context_.job;
    job.objective = objective;
    job.constraints = limits;
    PlanOptions options = options_;
    if (ends_known_)
      for (const auto& [value, plan] : nearest(goal_of(job))) options.previous.push_back(*plan);
    options.time_limit_s = std::max(1e-3, std::min(time_s, options_.time_limit_s));
    options.explain = explain && options_.explain;
    SearchResult result =
        search({job, context_.snapshot, context_.catalog, context_.profiles, context_.framework}, options);
    ++front_.searches;
    front_.complete = front_.complete && result.stats.complete;
    for (Candidate& candidate : result.candidates) {
      if (!plan_s_) plan_s_ = candidate.prediction.iteration_s;
      keep(std::move(candidate));
    }
    result.candidates.clear();
    return result;
  }

  void keep(Candidate candidate) {
    const double s = candidate.prediction.iteration_s, spent = candidate.prediction.total(expense_);
    for (const auto& [other_s, other_spent] : values_)
      if (other_s <= s * (1 + kSame) && other_spent <= spent * (1 + kSame)) return;
    if (!pool_.empty() && s <= *plan_s_ * (1 + kSame) && s > *plan_s_ * (1 - kHardlyFaster)) return;
    // What it beats goes: the pool stays as small as the front.
    size_t kept = 0;
    for (size_t i = 0; i < values_.size(); ++i) {
      if (s <= values_[i].first && spent <= values_[i].second) continue;
      if (kept != i) {
        values_[kept] = values_[i];
        pool_[kept] = std::move(pool_[i]);
      }
      ++kept;
    }
    values_.resize(kept);
    pool_.resize(kept);
    values_.emplace_back(s, spent);
    pool_.push_back(std::move(candidate));
  }

  // The fastest plan of at most this cost, and what its search proves.
  void ask_budget(double most) {
    ConstraintSpec limits = context_.job.constraints;
    limits.most[expense_] = std::min(most, limits.most[expense_].value_or(kAny));
    const int left = std::max(1, most_searches() - front_.searches);
    const SearchResult result = ask(Objective::throughput, limits, left_s() / left, false);
    if (result.bound_iteration_s) time_bounds_.push_back({most, *result.bound_iteration_s});
  }

  // Of the plans that are as fast as the fastest the cheapest, and the other way round.
  void refine_ends() {
    const std::vector<size_t> order = undominated(values_);
    const auto [fast_s, dear] = values_[order.back()];
    const double cheap = values_[order.front()].second;
    if (order.size() < 2) return;
    // Limits a hair wider than the plan itself, so that rounding does not shut it out.
    ConstraintSpec limits = context_.job.constraints;
    limits.min_iterations_per_s = std::max(1 / fast_s * (1 - kSame), limits.min_iterations_per_s.value_or(0));
    if (left_s() > 0) {
      const SearchResult result = ask(expense_, limits, left_s() * kShareOfEnds, false);
      if (result.bound[expense_]) cost_bounds_.push_back({fast_s * (1 + kSame), *result.bound[expense_]});
    }
    if (left_s() > 0) ask_budget(cheap * (1 + kSame));
  }

  // Two ends, their refinements, and twice as many budgets as there are points to find.
  int most_searches() const { return 4 + 2 * static_cast<int>(most_points_); }

  // Where the front has the widest hole, a budget.
  void fill_holes() {
    std::vector<double> asked;  // budgets, ascending
    while (left_s() > 0 && front_.searches < most_searches()) {
      const std::vector<size_t> order = undominated(values_);
      Hole widest{};
      for (size_t i = 0; i + 1 < order.size(); ++i) {
        const auto [slow_s, cheap] = values_[order[i]];
        const auto [fast_s, dear] = values_[order[i + 1]];
        // Whatever a budget between the two did not find is not there.
        const auto next = std::lower_bound(asked.begin(), asked.end(), dear);
        const double known = next == asked.begin() ? 0 : *std::prev(next);
        const Hole hole{std::max(cheap, known), dear, slow_s, fast_s};
        if (hole.area() > widest.area()) widest = hole;
      }
      if (widest.area() == 0) break;
      const double budget = widest.budget();
      asked.insert(std::upper_bound(asked.begin(), asked.end(), budget), budget);
      ask_budget(budget);
    }
  }

  using Bounds = std::vector<std::pair<double, double>>;  // (limit, bound under it)

  // The tightest bound that holds for plans with this value of what is limited.
  static std::optional<double> bound_at(const Bounds& bounds, double value) {
    std::optional<double> best;
    for (const auto& [limit, bound] : bounds)
      if (value <= limit && (!best || bound > *best)) best = bound;
    return best;
  }

  // Both ends, and of the others those whose loss would hide most of the front.
  void choose() {
    std::vector<size_t> order = undominated(values_);
    while (order.size() > std::max<size_t>(most_points_, 2)) {
      size_t least = 1;
      double least_area = kAny;
      for (size_t i = 1; i + 1 < order.size(); ++i) {
        const double area = std::log(values_[order[i - 1]].first / values_[order[i]].first) *
                            std::log(values_[order[i + 1]].second / values_[order[i]].second);
        if (area < least_area) std::tie(least, least_area) = std::pair(i, area);
      }
      order.erase(order.begin() + static_cast<ptrdiff_t>(least));
    }
    for (size_t index : order) {
      const auto [iteration_s, spent] = values_[index];
      ParetoPoint point{std::move(pool_[index]), expense_, bound_at(time_bounds_, spent),
                        bound_at(cost_bounds_, iteration_s)};
      // The plan is a point of the front, whichever search it comes from.
      if (point.candidate.plan.prediction) {
        point.candidate.plan.prediction->bound_iteration_s = point.bound_iteration_s;
        point.candidate.plan.prediction->bound[expense_] = point.bound;
      }
      front_.points.push_back(std::move(point));
    }
  }

  const PlanningContext& context_;
  const PlanOptions& options_;
  const Expense expense_;
  const size_t most_points_;
  const double time_limit_s_;
  const std::chrono::steady_clock::time_point started_;
  ParetoFront front_;
  bool ends_known_ = false;       // which are the answers of other verbs, whatever else is known
  std::optional<double> plan_s_;  // of the plan that the first search chose
  std::vector<Candidate> pool_;
  std::vector<std::pair<double, double>> values_;  // (seconds, spent) of pool_
  Bounds time_bounds_;                             // seconds, by budget
  Bounds cost_bounds_;                             // spent, by seconds of an iteration
};

}  // namespace

std::optional<double> ParetoPoint::gap() const {
  std::optional<double> least;
  const auto count = [&](double value, const std::optional<double>& bound) {
    if (!bound || !(*bound > 0)) return;
    const double gap = std::max(0.0, value / *bound - 1);
    least = std::min(gap, least.value_or(gap));
  };
  count(candidate.prediction.iteration_s, bound_iteration_s);
  count(candidate.prediction.total(expense), bound);
  return least;
}

std::vector<size_t> undominated(const std::vector<std::pair<double, double>>& s_and_spent) {
  std::vector<size_t> order(s_and_spent.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(s_and_spent[a].second, s_and_spent[a].first) <
           std::pair(s_and_spent[b].second, s_and_spent[b].first);
  });
  std::vector<size_t> front;
  for (size_t index : order)
    if (front.empty() || s_and_spent[index].first < s_and_spent[front.back()].first * (1 - kSame))
      front.push_back(index);
  return front;
}

ParetoFront pareto(const PlanningContext& context, const PlanOptions& options, int points,
                   double time_limit_s) {
  if (points < 2 || points > kMostParetoPoints) throw std::invalid_argument("pareto: points out of range");
  return Front(context, options, points, time_limit_s).run();
}

}  // namespace sailor
