#include "trainer/elastic/step_watch.h"

#include <algorithm>

namespace sailor {
namespace {

constexpr double kStall = 10;         // times the longest step so far
constexpr double kFirstStep_s = 300;  // before the first step

}  // namespace

void StepWatch::begin_generation(double predicted_s) {
  if (predicted_s > 0) longest_step_s_ = predicted_s;
  furthest_before_ = furthest_;
}

void StepWatch::reported(int64_t step, double step_s) {
  steps_done_ = std::max(steps_done_, step);
  longest_step_s_ = std::max(longest_step_s_, step_s);
  if (step <= furthest_) return;
  furthest_ = step;
  changes_in_vain_ = 0;
}

bool StepWatch::stalls(double in_step_s, double running_s, double lease_s) const {
  const double limit_s = longest_step_s_ > 0 ? std::max(lease_s, kStall * longest_step_s_) : kFirstStep_s;
  return std::min(in_step_s, running_s) >= limit_s;
}

}  // namespace sailor
