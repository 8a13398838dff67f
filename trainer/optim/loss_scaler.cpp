#include "trainer/optim/loss_scaler.h"

#include <algorithm>

namespace sailor {

LossScaler::LossScaler(const LossScaleSpec& spec) : spec_(spec) {
  continue_from({});
}

void LossScaler::continue_from(const LossScaleState& state) {
  state_ = state;
  if (state.scale == 0) {
    state_.scale = static_cast<double>(spec_.initial);
    state_.tolerated = spec_.hysteresis - 1;
  }
  state_.scale = std::max(state_.scale, static_cast<double>(spec_.minimum));
  state_.tolerated = std::min<int64_t>(state_.tolerated, spec_.hysteresis - 1);
}

void LossScaler::step_ended(bool overflow) {
  const auto minimum = static_cast<double>(spec_.minimum);
  if (overflow) {
    ++state_.skipped_steps;
    state_.skipped_at_minimum = state_.scale > minimum ? 0 : state_.skipped_at_minimum + 1;
    state_.clean_steps = 0;
    if (state_.tolerated > 0) {
      --state_.tolerated;
    } else {
      state_.scale = std::max(state_.scale / 2, minimum);
    }
    return;
  }
  state_.skipped_at_minimum = 0;
  if (++state_.clean_steps < spec_.window) return;
  state_.clean_steps = 0;
  state_.tolerated = spec_.hysteresis - 1;
  state_.scale *= 2;
}

}  // namespace sailor
