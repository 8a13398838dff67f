#include "trainer/optim/spike_guard.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace sailor {
namespace {

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return 0.5 * (*std::max_element(values.begin(), middle) + *middle);
}

}  // namespace

bool SpikeGuard::is_spike(double loss, double norm) const {
  if (!std::isfinite(loss) || !std::isfinite(norm)) return true;
  return static_cast<int>(state_.norms.size()) >= spec_.window && norm > spec_.factor * median(state_.norms);
}

void SpikeGuard::step_ended(double norm, bool skipped) {
  if (skipped) {
    ++state_.skipped_steps;
    ++state_.skipped_in_row;
    return;
  }
  state_.skipped_in_row = 0;
  state_.norms.push_back(norm);
  continue_from(state_);
}

void SpikeGuard::continue_from(const SpikeState& state) {
  state_ = state;
  const auto surplus = static_cast<std::ptrdiff_t>(state_.norms.size()) - spec_.window;
  if (surplus > 0) state_.norms.erase(state_.norms.begin(), state_.norms.begin() + surplus);
}

}  // namespace sailor
