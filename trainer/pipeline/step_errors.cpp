#include "trainer/pipeline/step_errors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

namespace sailor {
namespace {

// Some releases of libtorch return NaNs with a sign.
double without_sign_of_nan(double value) {
  return std::isnan(value) ? std::abs(value) : value;
}

}  // namespace

std::string not_finite_text(const StepResult& result, const std::string& ranks) {
  const bool loss_is_bad = !std::isfinite(result.loss);
  return fmt::format(
      "step {}: {} is {} on {}; try a lower training.optimizer.lr, more training.schedule.warmup_steps or "
      "training.clip_grad_norm; stopped before the update",
      result.step + 1, loss_is_bad ? "the loss" : "the gradient's norm",
      std::isnan(loss_is_bad ? result.loss : result.grad_norm) ? "not a number" : "infinite", ranks);
}

std::string overflow_text(const StepResult& result, const LossScaleSpec& spec, const LossScaleState& state) {
  return fmt::format(
      "step {}: gradients overflowed in {} steps in a row at training.loss_scale.minimum ({}), in {} of the "
      "whole run; try a lower training.optimizer.lr, more training.schedule.warmup_steps, or "
      "training.precision: bf16; stopped before the update",
      result.step + 1, LossScaler::kMostSkippedAtMinimum, spec.minimum, state.skipped_steps + 1);
}

std::string spike_text(const StepResult& result, const SpikeState& state) {
  return fmt::format(
      "step {}: the gradient's norm is {:.3g} and the loss {:.4g}, after {} steps in a row that "
      "training.on_spike skipped, of {} in the whole run; try a lower training.optimizer.lr, more "
      "training.schedule.warmup_steps or training.clip_grad_norm; stopped before the update",
      result.step + 1, without_sign_of_nan(result.grad_norm), without_sign_of_nan(result.loss),
      state.skipped_in_row, state.skipped_steps);
}

std::string divergence_text(const StepResult& result) {
  return fmt::format(
      "after step {} {}; memory, a device or the network may be at fault: exclude the node, and go on from a "
      "checkpoint before the fault",
      result.step + 1, fmt::join(result.diverged, "; "));
}

}  // namespace sailor
