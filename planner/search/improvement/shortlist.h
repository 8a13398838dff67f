// The assigned layouts that are worth improving (layout_improvement.h): the best few that the search came by,
// the second best too, because which of them ends first is only known afterwards. Keeps references to the
// tables of the search that added them. Not thread-safe.
#pragma once

#include <functional>
#include <list>
#include <utility>
#include <vector>

#include "planner/search/improvement/layout_improvement.h"

namespace sailor {

class Shortlist {
 public:
  // What is worse than the best known by more than this factor is not improved enough to matter.
  static constexpr double kSlack = 1.02;

  // `bound`: no assignment of the same pipeline template is better.
  void add(const AssignmentProblem& form, Assignment assigned, double bound);
  // Improves what was added since the last call, best first, and calls `found` with what came out of it;
  // `quickly_first`: all of it a little, then thoroughly. What cannot get better than `threshold()` is left
  // out.
  void improve(bool quickly_first, const std::function<double(const AssignmentProblem&)>& threshold,
               const std::function<void(const AssignmentProblem&, const Assignment&)>& found,
               const std::function<bool()>& expired);

 private:
  struct Entry {
    AssignmentProblem form;
    Assignment assigned;
    double value, bound;
  };
  std::list<Entry> entries_;  // best first
};

}  // namespace sailor
