// Improves a layout: the zone of each replica, and the order of the pipelines.
//
// Simulated annealing over pipeline blocks (pipeline_blocks.h, block_moves.h). A state may use more GPUs than
// there are; when its time alone would be accepted, a linear program repeats its patterns so that they fit.
// That finds arrangements in full zones, which no sequence of single moves reaches. Equal input gives equal
// output. The result meets the limits and is never worse than the start.
#pragma once

#include <functional>
#include <list>

#include "planner/search/assignment/assignment.h"

namespace sailor {

struct LayoutImprovementOptions {
  int steps = 96000;  // moves of all cycles together
  int cycles = 12;    // coolings; every third starts from the start, the others from the best arrangement
  size_t max_columns = 24;  // of all patterns of a state

  // Fraction of the value that one uphill move may cost: at the start of even and odd cycles, at the start of
  // the last cycle, and at the end of every cycle.
  double first_temperature[2] = {1e-2, 1e-3};
  double polish_temperature = 2e-4;
  double last_temperature = 2e-5;

  double smooth_share = 0.7;     // weight of the smooth maxima; the rest is the value itself
  double excess_weight = 20;     // per unit by which the time limit or budget is exceeded
  double overuse_weight = 0.05;  // per unit by which GPUs are exceeded
  double max_overuse = 1;        // states beyond it are rejected
  // Per column of the patterns, in pairs of cycles: prefers the simpler one of two equal states.
  double column_weight[2] = {1e-4, 6e-4};
};

Assignment improve_layout(const AssignmentProblem& problem, Assignment start,
                          const LayoutImprovementOptions& options, const std::function<bool()>& expired);

// The best assigned layouts of a search, which are improved after it: several, because an improvement can
// change their order. Keeps references to the tables of the search. Not thread-safe.
class Shortlist {
 public:
  // Layouts that are worse than the best known one by more than this factor are not added.
  static constexpr double kSlack = 1.02;

  // `bound`: a lower bound for all assignments of the same pipeline template.
  void add(const AssignmentProblem& form, Assignment assigned, double bound);
  // Improves the entries, best first, calls `found` with each result, and clears the list. `quickly_first`:
  // first all entries with few steps, then all with full steps. Skips entries with a bound that is not below
  // `threshold()`.
  void improve(bool quickly_first, const std::function<double()>& threshold,
               const std::function<void(const AssignmentProblem&, const Assignment&)>& found,
               const std::function<bool()>& expired);

 private:
  static constexpr size_t kMaxEntries = 2;
  static constexpr int kQuickSteps = 12000;

  struct Entry {
    AssignmentProblem form;
    Assignment assigned;
    double value, bound;
  };
  std::list<Entry> entries_;  // best first
};

}  // namespace sailor
