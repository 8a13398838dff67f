#include "planner/search/improvement/zone_assignment.h"

#include <algorithm>
#include <queue>

#include "planner/search/improvement/link_limits.h"

namespace sailor {
namespace {

constexpr size_t kMostColumns = 1024;    // of a cut
constexpr size_t kMostInSequence = 256;  // that limits leave over
// As ZoneProgram::work; all of it takes less than 0.1 s.
constexpr int64_t kMostEffort = 40000000, kMostPerSequence = 1000000;
constexpr double kBetter = 1 - 1e-9;

using Limits = LinkLimits::Limits;

struct Box {
  Limits low, high;
  double bound = 0;    // no arrangement in it is better
  int64_t number = 0;  // of equals the first
};
struct Later {
  bool operator()(const Box& a, const Box& b) const {
    return a.bound != b.bound ? a.bound > b.bound : a.number > b.number;
  }
};

class ZoneAssignment {
 public:
  ZoneAssignment(const AssignmentProblem& problem, const BlockCosts& costs, Assignment start,
                 const std::function<bool()>& expired)
      : p_(problem),
        costs_(costs),
        expired_(expired),
        limits_(problem, costs),
        best_(std::move(start)),
        best_value_(p_.goal.allowed_value(best_.value.iteration_s, best_.value.usd)) {}

  Assignment run() {
    Box all;
    for (size_t k = 0; k < limits_.size(); ++k) {
      all.low.push_back(0);
      all.high.push_back(static_cast<int>(limits_.seconds(k).size()) - 1);
    }
    push(std::move(all));
    while (!boxes_.empty() && effort_ > 0 && !expired_()) {
      Box box = boxes_.top();
      boxes_.pop();
      if (!better(box.bound)) break;
      if (tighten(box)) split(box);
    }
    return std::move(best_);
  }

 private:
  bool better(double value) const { return value < best_value_ * kBetter; }

  void push(Box box) {
    box.bound = std::max(box.bound, limits_.iteration_s(box.low));
    if (!better(box.bound)) return;
    box.number = ++boxes_made_;
    boxes_.push(std::move(box));
  }

  // Takes away what cannot be better than the best, then what cannot be arranged; false when nothing is left.
  bool tighten(Box& box) {
    Limits at = box.low;
    for (size_t k = 0; k < limits_.size(); ++k) {
      for (at[k] = box.high[k]; at[k] > box.low[k] && !better(limits_.iteration_s(at));) --at[k];
      box.high[k] = at[k];
      at[k] = box.low[k];
    }
    if (!limits_.possible(box.high, effort_)) return false;
    at = box.high;
    for (size_t k = 0; k < limits_.size(); ++k) {
      int least = box.low[k], most = box.high[k];
      while (least < most) {
        if (expired_()) return false;
        at[k] = (least + most) / 2;
        if (limits_.possible(at, effort_))
          most = at[k];
        else
          least = at[k] + 1;
      }
      box.low[k] = least;
      at[k] = box.high[k];
    }
    box.bound = std::max(box.bound, limits_.iteration_s(box.low));
    if (!better(box.bound)) return false;
    // Whatever is arranged within limits as good as that is better than the best; where nothing is, no
    // tighter ones help.
    return !better(limits_.iteration_s(box.high)) || arrange(box.high);
  }

  // In two where the choice of one limit matters most.
  void split(const Box& box) {
    size_t widest = limits_.size();
    double most = -1;
    for (size_t k = 0; k < limits_.size(); ++k) {
      if (box.low[k] == box.high[k]) continue;
      Limits at = box.low;
      at[k] = box.high[k];
      if (const double value = limits_.iteration_s(at); value > most) {
        most = value;
        widest = k;
      }
    }
    if (widest == limits_.size()) return;
    const int middle = (box.low[widest] + box.high[widest]) / 2;
    Box lower = box, upper = box;
    lower.high[widest] = middle;
    upper.low[widest] = middle + 1;
    push(std::move(lower));
    push(std::move(upper));
  }

  // Looks for an arrangement, and keeps it if it is better; false when none was found within these limits and
  // the search for it came to its end.
  bool arrange(const Limits& limits) {
    const std::vector<int> columns = limits_.within(limits, false);
    if (columns.size() > kMostInSequence) return true;
    const SequenceProblem problem = limits_.sequence_over(columns, limits);
    effort_ -= static_cast<int64_t>(columns.size() * columns.size());
    const int64_t most = std::min(effort_, kMostPerSequence);
    int64_t left = most;
    const std::optional<ZoneSequence> sequence = find_sequence(problem, left);
    effort_ -= most - left;
    if (!sequence) return left <= 0;
    PipelineBlocks blocks;
    for (const SequenceStep& step : *sequence)
      blocks.push_back({{limits_.options(columns[step.column])}, step.times});
    Assignment next;
    next.layout = costs_.layout_of(blocks);
    next.value = evaluate(p_.costs.stage(), p_.costs.resources(), next.layout, p_.replicas, p_.microbatches);
    if (const double value = p_.goal.allowed_value(next.value.iteration_s, next.value.usd);
        value < best_value_) {
      best_ = std::move(next);
      best_value_ = value;
    }
    return true;
  }

  const AssignmentProblem& p_;
  const BlockCosts& costs_;
  const std::function<bool()>& expired_;
  const LinkLimits limits_;
  Assignment best_;
  double best_value_;
  std::priority_queue<Box, std::vector<Box>, Later> boxes_;
  int64_t boxes_made_ = 0, effort_ = kMostEffort;
};

}  // namespace

Assignment assign_zones(const AssignmentProblem& problem, Assignment start,
                        const std::function<bool()>& expired) {
  if (problem.goal.objective != Objective::throughput || problem.replicas < 2) return start;
  const BlockCosts costs(problem, start.layout);
  if (!costs.open() || LinkLimits::columns(costs) > kMostColumns) return start;
  return ZoneAssignment(problem, costs, std::move(start), expired).run();
}

}  // namespace sailor
