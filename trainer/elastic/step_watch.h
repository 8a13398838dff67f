// How far training is and how long its steps take: what tells a step that takes long from a rank that hangs,
// and how far ahead a change of plan must be announced. Not thread-safe.
#pragma once

#include <cstdint>
#include <vector>

namespace sailor {

class StepWatch {
 public:
  // A generation begins whose steps should take `predicted_s` (0 = not known).
  void begin_generation(double predicted_s);
  // It trains, from `steps_done` on.
  void running(int64_t steps_done) { steps_done_ = steps_done; }
  void reported(int64_t step, double step_s);
  // Training goes on after a change.
  void changed() { ++changes_in_vain_; }

  // By whoever is furthest.
  int64_t steps_done() const { return steps_done_; }
  // In any generation.
  int64_t furthest() const { return furthest_; }
  // Changes in a row since training was last further than ever.
  int changes_in_vain() const { return changes_in_vain_; }
  // The step after which all can stop: nobody has begun the one behind it.
  int64_t reachable_by_all() const;
  double longest_step_s() const { return longest_step_s_; }
  // Does somebody hang, when training has run for `running_s` in this generation and every rank has said last
  // that it is inside its step for `in_step_s`, which may have been in the generation before? Leases are
  // `lease_s` long.
  bool stalls(double in_step_s, double running_s, double lease_s) const;

 private:
  int64_t steps_done_ = 0, furthest_ = 0;
  int changes_in_vain_ = 0;
  double longest_step_s_ = 0;  // of this generation, or predicted; 0 = not known
};

}  // namespace sailor
