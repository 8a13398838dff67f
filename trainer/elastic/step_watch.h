// Tracks the progress of training and the duration of its steps, to distinguish a long step from a rank that
// hangs. Not thread-safe.
#pragma once

#include <cstdint>
#include <vector>

namespace sailor {

class StepWatch {
 public:
  // A generation begins, with the predicted time of a step (0 = unknown).
  void begin_generation(double predicted_s);
  // Its training begins after `steps_done` steps.
  void running(int64_t steps_done) { steps_done_ = steps_done; }
  void reported(int64_t step, double step_s);
  // Training continues after a change.
  void changed() { ++changes_in_vain_; }

  // Steps of the most advanced rank.
  int64_t steps_done() const { return steps_done_; }
  // Maximum of steps_done() over all generations.
  int64_t furthest() const { return furthest_; }
  // The same when this generation began.
  int64_t furthest_before() const { return furthest_before_; }
  // Consecutive changes without progress beyond furthest().
  int changes_in_vain() const { return changes_in_vain_; }
  double longest_step_s() const { return longest_step_s_; }
  // Does a rank hang? Training has run for `running_s` in this generation. According to its last message,
  // every rank has been inside its step for at least `in_step_s`; the message may be from the previous
  // generation. `lease_s` is the duration of a lease.
  bool stalls(double in_step_s, double running_s, double lease_s) const;

 private:
  int64_t steps_done_ = 0, furthest_ = 0, furthest_before_ = 0;
  int changes_in_vain_ = 0;
  double longest_step_s_ = 0;  // of this generation, or predicted; 0 = unknown
};

}  // namespace sailor
