// The signs that a job must stop before its last step: signals to the controller, a node of a job that is not
// elastic leaves, and the time limit. Used from the controller's thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "planner/scheduler/scheduler.h"
#include "trainer/control/control_message.h"
#include "trainer/elastic/job_stop.h"

namespace sailor {

class StopSigns {
 public:
  struct Options {
    std::string job;                 // its id
    std::optional<int64_t> end_s{};  // time limit, since 1970; nothing = it does not matter
    int64_t began_s = 0;             // since 1970
    int64_t checkpoint_bytes = 0;    // before a save was measured
  };
  // `scheduler` outlives the object. It is asked about the job once, when the limit is near: limits change.
  StopSigns(Options options, Scheduler& scheduler) : options_(std::move(options)), scheduler_(scheduler) {}

  // `clock_s` is any monotonic clock.
  void signalled(int number, double clock_s);
  std::optional<int> signal() const { return signal_; }
  // The user has sent another Ctrl-C, and does not want to wait for a checkpoint.
  bool impatient() const { return impatient_; }

  // Of the training so far.
  struct Training {
    std::optional<Leaving> told_to_leave{};
    double longest_step_s = 0;
    std::optional<double> save_s{};
  };
  std::optional<StopReason> reason(const Training& training, int64_t now_s);

 private:
  bool is_extended();

  Options options_;
  Scheduler& scheduler_;
  std::optional<int> signal_;
  double signalled_s_ = 0;
  bool impatient_ = false;
};

}  // namespace sailor
