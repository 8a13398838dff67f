// Finds steps whose gradient is not to be trusted, so that their update is skipped: its norm or the loss is
// not finite, or the norm is more than `factor` times the median norm of the last `window` updates. Until
// there were as many, only what is not finite is a spike. Plain values; one thread per object.
//
//     SpikeGuard guard(*job.training.on_spike);
//     const bool spike = guard.is_spike(loss, norm);  // the same on every rank
//     if (!spike) optimizer.step(...);
//     guard.step_ended(norm, spike);
//
// Ranks that are told the same sequence of steps have the same state.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/spec/job_spec.h"

namespace sailor {

// What training needs to resume.
struct SpikeState {
  int64_t skipped_steps = 0;   // of the whole run
  int64_t skipped_in_row = 0;  // since the last update
  std::vector<double> norms;   // of the last updates, the oldest first

  bool operator==(const SpikeState&) const = default;
};

class SpikeGuard {
 public:
  explicit SpikeGuard(const SpikeSpec& spec) : spec_(spec) {}

  bool is_spike(double loss, double norm) const;
  // May the step that is a spike be skipped, or were there as many in a row as the spec allows?
  bool may_skip() const { return state_.skipped_in_row < spec_.most_in_a_row; }
  void step_ended(double norm, bool skipped);

  const SpikeState& state() const { return state_; }
  // Continues from the state of a checkpoint or of another rank.
  void continue_from(const SpikeState& state);

 private:
  SpikeSpec spec_;
  SpikeState state_;
};

}  // namespace sailor
