// Makes the plan of the next generation, and decides whether a better plan is worth a change. To keep changes
// short, a search starts from the best plans of the previous one, and a truncated search is followed by a
// longer one during training (second_look.h). A job without NextPlan has only one generation.
//
// Plans are placed on GPUs that have a process; `in_force` is the plan that was sent last. Used from the
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
  // `first` is the plan of generation 1, placed. `job` outlives the object. Throws like Replanner.
  NextPlan(const JobSpec& job, const Plan& first, const Replanner::Options& options);

  // The plan to continue with on these GPUs: the one that was found to pay, if `gpus` has all its GPUs, else
  // a new plan. If there is none, the text says why.
  Replanned make(const Plan& in_force, const std::vector<LiveGpu>& gpus);
  // `made` has been sent and replaces `before`.
  void take(const Replanned& made, const Plan& before);

  // The set of GPUs has changed: does a plan for them pay? Then the next make() returns it. If the search
  // was truncated before it found one, a longer one is due.
  bool pays_with(const Plan& in_force, const std::vector<LiveGpu>& gpus);

  struct LongerSearch {
    Plan plan;
    double now_s = 0, then_s = 0;  // predicted iteration time of the plan in force and of this one
    bool pays = false;             // then the next make() returns it
  };
  // Call often during undisturbed training on these GPUs. Returns the result of a longer search once, if it
  // found a plan. A change would stop training for `change_s`.
  std::optional<LongerSearch> search_longer(const Plan& in_force, const std::vector<LiveGpu>& gpus,
                                            double change_s, int64_t steps_left);
  // Is search_longer() useful now?
  bool wants_longer_search() const { return second_look_.wanted(); }
  // Training is being changed: discards the running longer search.
  void cancel_search() { second_look_.cancel(); }

  // Predicted seconds per iteration of a plan; nothing without profiles.
  std::optional<double> promised_s(const Plan& plan) const;
  const Replanner& replanner() const { return replanner_; }
  // The job has a new node.
  void add_node(const SnapshotNode& node) { replanner_.add_node(node); }

 private:
  Replanner replanner_;
  SecondLook second_look_;
  std::vector<Plan> runners_up_;    // of the last search, and the previous plan
  std::optional<Replanned> found_;  // the plan of the pending change
};

}  // namespace sailor
