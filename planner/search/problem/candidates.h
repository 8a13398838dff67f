// The plans that a search under the published cost model keeps: the best one of each structure (GPUs used,
// stages, TP degrees), so that the candidates differ in more than a layer boundary. Not thread-safe.
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "planner/search/problem/goal.h"
#include "planner/search/problem/resources.h"
#include "planner/search/problem/search_result.h"

namespace sailor {

// What a user would consider the same plan: the GPUs of each type and zone, the TP degrees of the stages of
// each kind of pipeline, and its features.
std::string structure_of(const Plan& plan);

using Better = std::function<bool(const Candidate&, const Candidate&)>;
Better better_by(const Goal& goal);
// Of each structure the best remains, at most `count` in all, best first: those that are only shown, and all
// but the first kCandidates, after the others.
void keep_best(std::vector<Candidate>& all, const Better& better, int count);
// The same with the candidates of another search of the same job.
void add_candidates(SearchResult& result, std::vector<Candidate> others, const Goal& goal, int count);
// The end of a search: of those that are only shown, drops what is better than others, so that the first
// candidates are the same whatever number is shown.
void drop_better_shown(std::vector<Candidate>& all, const Better& better);
// Writes its prediction into every plan.
void fill_in_predictions(SearchResult& result);

class Candidates {
 public:
  Candidates(const PlanningContext& context, const Resources& resources, Goal goal)
      : context_(context), resources_(resources), goal_(goal) {}

  double best() const { return best_; }  // infinite if there is none
  bool empty() const { return plans_.empty(); }
  // Keeps a plan with a known value.
  void keep(Plan plan, double value);
  // Predicts a plan, and keeps it if it fits and meets the limits; otherwise counts the reason in `rejected`.
  void score(const Plan& plan, std::map<std::string, int64_t>& rejected);

  // Up to `count` plans placed on nodes, predicted and checked, best first.
  std::vector<Candidate> placed(int count, std::map<std::string, int64_t>& rejected) const;
  double value(const Prediction& prediction) const;

 private:
  using Entry = std::pair<double, Plan>;  // with its value

  bool accepted(const Prediction& prediction, std::map<std::string, int64_t>& rejected) const;

  const PlanningContext& context_;
  const Resources& resources_;
  Goal goal_;
  double best_ = std::numeric_limits<double>::infinity();
  std::map<std::string, Entry> plans_;  // by structure
};

}  // namespace sailor
