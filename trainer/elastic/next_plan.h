// Which plan a job goes on with, and when another one is worth a change. What keeps the change short is here:
// the plans that were nearly chosen are where the next search starts from, and a search that was cut short is
// followed by a longer one while training goes on (second_look.h). A job without it has no next generation.
//
// Plans are placed on GPUs that have a process; `in_force` is the one that was sent out last. Used from the
// controller's thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/spec/job_spec.h"
#include "trainer/elastic/replanner.h"
#include "trainer/elastic/second_look.h"

namespace sailor {

class NextPlan {
 public:
  // `first` is the plan that the job begins with, placed. `job` outlives the object. Throws as Replanner
  // does.
  NextPlan(const JobSpec& job, const Plan& first, const Replanner::Options& options);

  // What it is to go on with on those GPUs: what the longer search has found last, if they have all that it
  // needs, else a plan that is made now. Without a plan, the text says why.
  Replanned make(const Plan& in_force, const std::vector<LiveGpu>& gpus);
  // That plan has been sent out, in place of `before`.
  void take(const Replanned& made, const Plan& before);

  // There are other GPUs: does a plan for them pay?
  bool pays_with(const Plan& in_force, const std::vector<LiveGpu>& gpus) const;

  struct LongerSearch {
    Plan plan;
    double now_s = 0, then_s = 0;  // of an iteration, as promised of the plan in force and of this one
    bool pays = false;             // the next make() gives it
  };
  // To be called often while training goes its way, on those GPUs: the result of a longer search, once it has
  // ended with a plan. A change would stop training for `change_s`.
  std::optional<LongerSearch> search_longer(const Plan& in_force, const std::vector<LiveGpu>& gpus,
                                            double change_s, int64_t steps_left);
  // Is that of any use?
  bool wants_longer_search() const { return second_look_.wanted(); }
  // Training does not go its way: the longer search that is under way counts for nothing.
  void cancel_search() { second_look_.cancel(); }

  // Seconds of an iteration that a plan promises; nothing where there are no profiles.
  std::optional<double> promised_s(const Plan& plan) const;
  const Replanner& replanner() const { return replanner_; }
  // The job has got another node.
  void add_node(const SnapshotNode& node) { replanner_.add_node(node); }

 private:
  Replanner replanner_;
  SecondLook second_look_;
  std::vector<Plan> runners_up_;    // of the last search, and the plan before it
  std::optional<Replanned> found_;  // by the longer search: what the job is about to change to
};

}  // namespace sailor
