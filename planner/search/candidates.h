// The plans worth keeping while the search runs: the best one of each structure (GPUs used, stages, TP
// degrees), so that the candidates that a user sees differ in more than a layer boundary. Not thread-safe.
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "planner/search/skeleton_search.h"

namespace sailor {

class Candidates {
 public:
  Candidates(const PlanningContext& context, const Resources& resources, CostModel model, Goal goal)
      : context_(context), resources_(resources), model_(model), goal_(goal) {}

  double best() const { return best_; }  // infinite when there is none
  bool empty() const { return plans_.empty(); }
  // Keeps a plan under a value that is already known.
  void keep(Plan plan, double value);
  // Predicts a plan and keeps it when it fits and meets the limits; says whether it does. `rejected` counts
  // why not.
  bool score(const Plan& plan, std::map<std::string, int64_t>& rejected);

  // The best unplaced plans with their values, best first, `most` at most.
  std::vector<std::pair<double, Plan>> ranked(size_t most) const;
  // Up to `count` plans placed on nodes, predicted and checked, best first. Under the native model some more
  // are placed until it is `late`: where replicas are may change their order.
  std::vector<Candidate> placed(int count, const std::function<bool()>& late,
                                std::map<std::string, int64_t>& rejected) const;
  double value(const Prediction& prediction) const;

 private:
  using Entry = std::pair<double, Plan>;  // with its value

  std::vector<const Entry*> best_first() const;
  bool accepted(const Prediction& prediction, std::map<std::string, int64_t>& rejected) const;

  const PlanningContext& context_;
  const Resources& resources_;
  CostModel model_;
  Goal goal_;
  double best_ = std::numeric_limits<double>::infinity();
  std::map<std::string, Entry> plans_;  // by structure
};

}  // namespace sailor
