// Gives templates their value and keeps the best: every template that a search thinks of comes through here
// once. Counts effort in steps of the simulator, so that what is found does not depend on the machine or on
// how busy it is; a time limit may end it early, and is remembered. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "planner/search/native/plan_template.h"
#include "planner/search/problem/deadline.h"
#include "planner/search/problem/goal.h"
#include "planner/simulator/iteration_model.h"
#include "planner/simulator/known_values.h"

namespace sailor::native {

class Scorer {
 public:
  // `steps`: the effort that may be spent. Keeps references.
  Scorer(const Space& space, const Goal& goal, int64_t steps, Deadline& deadline);

  // What is to be minimized; beyond the user's limits more than any value within them, and the less the
  // closer, the same for memory as long as nothing fits; infinite when there is no such plan. A value of
  // `most` or more may be anything between that and its own.
  double score(const PlanTemplate& of, double most = kNever);
  // The best value within the limits so far.
  double best() const { return best_; }
  // An iteration that takes longer is no plan within `factor` of the best; infinite where time alone does not
  // tell.
  double most_iteration_s(double factor) const {
    return !goal_.objective.expense() && best_ < kNever ? factor * best_ : kNever;
  }
  // The best template of each structure (GPUs, stages, TP degrees), best first.
  std::vector<std::pair<double, PlanTemplate>> ranked(size_t most) const;
  // As long as there is none: what came closest to fit into memory, if anything did.
  std::vector<std::pair<double, PlanTemplate>> closest() const { return closest_; }
  // The best of each set of pools, best first.
  std::vector<std::pair<double, PlanTemplate>> ranked_by_pools() const;

  // Notes that a climb passes a template; false when one did before.
  bool passes(const PlanTemplate& at) { return passed_.insert(hash_of(at)).second; }

  // Is the effort, or the time, spent?
  bool spent();
  // Effort spent until now, and what all of it may be.
  int64_t steps() const { return model_.steps() + own_steps_; }
  int64_t most_steps() const { return most_steps_; }
  void count(int64_t steps) { own_steps_ += steps; }
  int64_t scored() const { return scored_; }
  std::map<std::string, int64_t> rejected;  // by reason

  const Space& space() const { return space_; }
  const Goal& goal() const { return goal_; }
  IterationModel& model() { return model_; }

 private:
  struct Known {
    double value = kNever;
    bool exact = true;  // or not less
  };

  double compute(const PlanTemplate& of, double most, bool& exact);
  double idle_per_s(const PlanTemplate& of) const;
  double least_pipeline_s(const PlanTemplate& of);

  const Space& space_;
  const Goal goal_;
  const int64_t most_steps_;
  Deadline& deadline_;
  IterationModel model_;
  int64_t own_steps_ = 0, scored_ = 0;
  double best_ = kNever;
  CompactPlan plan_;
  std::vector<double> group_s_, before_s_;
  std::unordered_set<uint64_t> passed_;
  KnownValues<Known> known_;
  std::unordered_map<uint64_t, std::pair<double, PlanTemplate>> kept_;
  std::vector<std::pair<double, PlanTemplate>> closest_;  // one at most
};

}  // namespace sailor::native
