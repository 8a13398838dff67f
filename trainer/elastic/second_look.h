// A longer search for a better plan after a generation has begun.
//
// Training stops while a job changes its generation, so the search has only a fraction of a second. On large
// clusters it is then truncated. In that case a second search with more time follows during training, in a
// low-priority thread, once for the same set of GPUs. The owner decides what to do with its plan. Used from
// one thread.
#pragma once

#include <atomic>
#include <future>
#include <optional>
#include <vector>

#include "planner/plan/plan.h"
#include "trainer/elastic/replanner.h"

namespace sailor {

class SecondLook {
 public:
  // The state of undisturbed training: no change is in progress or pending.
  struct Training {
    std::vector<LiveGpu> gpus;
    Plan plan;  // in force
    std::vector<Plan> runners_up;
  };

  explicit SecondLook(double time_limit_s) : time_limit_s_(time_limit_s) {}
  ~SecondLook() { cancel(); }  // waits for its end, which is soon

  // A plan has been made. `complete`: its search was not truncated.
  void planned(bool complete) { due_ = !complete; }
  // Is tick() useful now?
  bool wanted() const { return due_ || answer_.valid(); }
  // Call often during undisturbed training. Returns the result of the longer search once, if it found a plan.
  std::optional<Replanned> tick(const Training& training, const Replanner& replanner);
  // The GPUs have changed, or will change: discards the running search; another one is due.
  void cancel();

 private:
  const double time_limit_s_;
  bool due_ = false;
  std::vector<LiveGpu> asked_, answered_;  // GPUs of the running search; of the last completed one
  std::atomic<bool> stop_ = false;         // outlives the thread of `answer_`
  std::future<Replanned> answer_;
};

}  // namespace sailor
