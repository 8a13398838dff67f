// Scores templates and keeps the best: every template of a search is scored here once. Counts effort in steps
// of the simulator, so that results do not depend on the machine or its load; a time limit may end it early,
// which is recorded. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "planner/search/native/plan_template.h"
#include "planner/search/native/recompute_levels.h"
#include "planner/search/native/weight_delays.h"
#include "planner/search/problem/deadline.h"
#include "planner/search/problem/goal.h"
#include "planner/simulator/iteration_model.h"
#include "planner/simulator/known_values.h"

namespace sailor::native {

class Scorer {
 public:
  // `steps`: the effort available. Keeps references.
  Scorer(const Space& space, const Goal& goal, int64_t steps, Deadline& deadline);

  // From now on stages recompute as little as possible, whatever their templates say (recompute_levels.h).
  // For frameworks with several levels.
  void recompute_as_needed() { recomputes_as_needed_ = space_.context.framework.recompute_parts; }
  bool recomputes_as_needed() const { return recomputes_as_needed_; }

  // From now on templates that shard states are scored with groups of pipelines, too, whatever they say.
  void group_states() { groups_states_ = true; }

  // The value to minimize, with split backwards where the space may have them, memory allows it
  // (weight_delays.h), and it gains anything. Beyond the user's limits it is larger than any value within
  // them, and smaller the closer it is to them; the same for memory as long as nothing fits; infinite if
  // there is no such plan. A value of `most` or more is only a lower bound.
  double score(const PlanTemplate& of, double most = kNever);
  // The best value within the limits so far.
  double best() const { return best_; }
  // Iterations that take longer are not within `factor` of the best; infinite if time alone does not decide.
  double most_iteration_s(double factor) const {
    return !goal_.objective.expense() && best_ < kNever ? factor * best_ : kNever;
  }
  // The best template of each structure (GPUs, stages, TP degrees), best first.
  std::vector<std::pair<double, PlanTemplate>> ranked(size_t most) const;
  // The same of those beyond the user's limits, or, while nothing fits, of those that came closest.
  std::vector<std::pair<double, PlanTemplate>> closest(size_t most) const;
  // The best of each set of pools, best first.
  std::vector<std::pair<double, PlanTemplate>> ranked_by_pools() const;

  // Records that a climb passes a template; false if one did before.
  bool passes(const PlanTemplate& at) { return passed_.insert(hash_of(at)).second; }

  // Is the effort, or the time, spent?
  bool spent();
  // Effort spent so far, and the total effort.
  int64_t steps() const { return model_.steps() + own_steps_; }
  int64_t most_steps() const { return most_steps_; }
  void count(int64_t steps) { own_steps_ += steps; }
  int64_t scored() const { return scored_; }
  std::map<std::string, int64_t> rejected;  // by reason

  const Space& space() const { return space_; }
  const Goal& goal() const { return goal_; }
  IterationModel& model() { return model_; }

 private:
  using ByStructure = std::unordered_map<uint64_t, std::pair<double, PlanTemplate>>;
  struct Known {
    double value = kNever;
    bool exact = true;  // false: a lower bound
  };

  double score_settled(const PlanTemplate& of, double most);
  void settle_recomputation(PlanTemplate& of, Offloading offloading = Offloading::cheaper);
  Delays settle_delays(PlanTemplate& of);
  // The best of some ways to split the backwards of a template, and of none.
  double score_split(const PlanTemplate& whole, double most);
  double score_as_it_is(const PlanTemplate& of, double most);
  static void keep(ByStructure& in, double value, const PlanTemplate& of);
  static std::vector<std::pair<double, PlanTemplate>> best_of(const ByStructure& all, size_t most);
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
  bool recomputes_as_needed_ = false, groups_states_ = false;
  std::unordered_set<uint64_t> passed_;
  KnownValues<Known> known_;
  ByStructure kept_, beyond_;
};

}  // namespace sailor::native
