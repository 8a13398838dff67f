// The dynamic loss scale of training in fp16, as Megatron-LM has it: the loss is multiplied by the scale
// before the backward, so that small gradients are not below the smallest number, and gradients are divided
// by it before anything uses them. An overflow skips the update of the step. Plain values; one thread per
// object.
//
//     LossScaler scaler(job.training.loss_scale);
//     ... backward of scaler.scale() times the loss ...
//     const bool overflow = ...;          // the same on every rank
//     if (!overflow) optimizer.step(...);
//     scaler.step_ended(overflow);
//
// Ranks that are told the same sequence of overflows have the same state. The scale is a power of two, so
// that scaling rounds nothing.
#pragma once

#include <cstdint>

#include "planner/spec/job_spec.h"

namespace sailor {

// What training needs to resume. A `scale` of 0: it was not scaled.
struct LossScaleState {
  double scale = 0;
  int64_t clean_steps = 0;         // since the last overflow or growth
  int64_t tolerated = 0;           // overflows from now on before the scale is halved
  int64_t skipped_steps = 0;       // of the whole run
  int64_t skipped_at_minimum = 0;  // in a row, with a scale that cannot be halved

  bool operator==(const LossScaleState&) const = default;
};

class LossScaler {
 public:
  // Overflows in a row at the minimum scale that end the training: another cause than the scale.
  static constexpr int64_t kMostSkippedAtMinimum = 10;

  explicit LossScaler(const LossScaleSpec& spec);

  double scale() const { return state_.scale; }
  const LossScaleState& state() const { return state_; }
  // Continues from the state of a checkpoint or of another rank, within the limits of the spec. From one that
  // was not scaled: starts from the initial scale.
  void continue_from(const LossScaleState& state);

  // After a step: `window` clean ones in a row double the scale; of the overflows since then the first
  // `hysteresis` - 1 leave it, each further one halves it.
  void step_ended(bool overflow);
  // May the step that just overflowed be skipped, or is it the last of kMostSkippedAtMinimum?
  bool may_skip() const { return state_.skipped_at_minimum + 1 < kMostSkippedAtMinimum; }

 private:
  LossScaleSpec spec_;
  LossScaleState state_;
};

}  // namespace sailor
