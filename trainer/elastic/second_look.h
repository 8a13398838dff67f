// A longer search for the plan of a generation that has begun already.
//
// While a job changes its generation training stands still, so that search gets a fraction of a second, and
// on large clusters that is not enough to come to its end. Then another one follows, with more time, while
// training goes on: in a thread of its own that yields to the ranks of its node. Once for the same GPUs.
// What is done with its plan is the owner's business. Used from one thread.
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
  // What the owner tells when training goes its way: no change is going on, or about to.
  struct Training {
    std::vector<LiveGpu> gpus;
    Plan plan;  // in force
    std::vector<Plan> runners_up;
  };

  explicit SecondLook(double time_limit_s) : time_limit_s_(time_limit_s) {}
  ~SecondLook() { cancel(); }  // and waits until it has ended, which is soon

  // A plan has been made. Did its search come to its end?
  void planned(bool complete) { due_ = !complete; }
  // Is tick() of any use?
  bool wanted() const { return due_ || answer_.valid(); }
  // To be called often while training goes its way: what the longer search has found, when it has ended with
  // a plan.
  std::optional<Replanned> tick(const Training& training, const Replanner& replanner);
  // The GPUs have changed, or are about to: the search that is under way counts for nothing, and another one
  // is due.
  void cancel();

 private:
  const double time_limit_s_;
  bool due_ = false;
  std::vector<LiveGpu> asked_, answered_;  // the GPUs of the search that is under way; of one that ended
  std::atomic<bool> stop_ = false;         // outlives the thread of `answer_`
  std::future<Replanned> answer_;
};

}  // namespace sailor
