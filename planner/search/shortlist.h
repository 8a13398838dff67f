// The realized layouts that are worth a closer look (improve_layout.h): the best few that the search came by,
// the second best too, because which of them ends first is only known afterwards. Keeps references to the
// tables of the search that added them. Not thread-safe.
#pragma once

#include <functional>
#include <list>
#include <utility>
#include <vector>

#include "planner/search/improve_layout.h"

namespace sailor {

class Shortlist {
 public:
  // What is worse than the best known by more than this factor is not improved enough to matter.
  static constexpr double kSlack = 1.02;

  // `bound`: no realization of the same skeleton is better.
  void add(const RealizeProblem& form, Realized realized, double bound);
  // Improves what was added since the last call, best first, and calls `found` with what came out of it;
  // `quickly_first`: all of it a little, then thoroughly. What cannot get better than `threshold()` is left
  // out.
  void improve(bool quickly_first, const std::function<double(const RealizeProblem&)>& threshold,
               const std::function<void(const RealizeProblem&, const Realized&)>& found,
               const std::function<bool()>& expired);

 private:
  struct Entry {
    RealizeProblem form;
    Realized realized;
    double value, bound;
  };
  std::list<Entry> entries_;  // best first
};

}  // namespace sailor
