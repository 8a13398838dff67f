#include "planner/search/published/iterative_deepening.h"

#include <algorithm>
#include <cmath>
#include <queue>

#include "planner/search/problem/goal.h"

namespace sailor {
namespace {

struct Open {
  double bound;
  size_t index;
  int steps = 0;
  double searched = 0;

  double target(const DeepeningOptions& options) const {
    if (steps > options.most_steps || !(bound > 0)) return kNever;
    return bound * std::exp(options.step * (1 << std::max(0, steps - options.even_steps)));
  }
};

}  // namespace

Deepened deepen(const Deepening& problem) {
  const auto later = [](const Open& a, const Open& b) {
    return a.bound != b.bound ? a.bound > b.bound : a.index > b.index;
  };
  std::priority_queue<Open, std::vector<Open>, decltype(later)> open(later);
  for (size_t i = 0; i < problem.bounds.size(); ++i) open.push({problem.bounds[i], i});
  Deepened out{true, kNever};
  const auto leave_open = [&](double bound) {
    out.complete = false;
    out.open_value = std::min(out.open_value, bound);
  };
  while (!open.empty() && open.top().bound < problem.best()) {
    Open next = open.top();
    open.pop();
    if (problem.expired()) {
      leave_open(next.bound);
      break;
    }
    const double best = problem.best();
    const bool at_once = problem.trusted || (problem.limited && best == kNever);
    const double target = at_once ? best : std::min(best, next.target(problem.options));
    ++next.steps;
    if (!problem.search(next.index, target, next.searched)) {
      leave_open(next.bound);
      continue;
    }
    next.searched = next.bound = target;
    if (std::isfinite(target)) open.push(next);
  }
  return out;
}

}  // namespace sailor
