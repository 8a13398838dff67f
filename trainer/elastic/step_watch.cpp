#include "trainer/elastic/step_watch.h"

#include <algorithm>

namespace sailor {
namespace {

constexpr double kStall = 10;         // times the longest step so far
constexpr double kFirstStep_s = 300;  // before the first step
constexpr int64_t kStepsAhead = 2;    // ranks are at most one step apart, and a report is in flight
constexpr double kDelay_s = 1;        // of reports and orders on a busy machine: steps go on meanwhile
constexpr double kNewest = 1.0 / 8;   // weight of a report in the average

}  // namespace

void StepWatch::begin_generation(double predicted_s) {
  recent_step_s_ = last_step_s_ = 0;
  if (predicted_s > 0) longest_step_s_ = predicted_s;
}

void StepWatch::reported(int64_t step, double step_s) {
  steps_done_ = std::max(steps_done_, step);
  longest_step_s_ = std::max(longest_step_s_, step_s);
  recent_step_s_ = recent_step_s_ > 0 ? recent_step_s_ + kNewest * (step_s - recent_step_s_) : step_s;
  last_step_s_ = step_s;
  if (step <= furthest_) return;
  furthest_ = step;
  changes_in_vain_ = 0;
}

int64_t StepWatch::reachable_by_all() const {
  // Not the longest step, or a prediction: the first step may take many times as long as others.
  const double step_s = std::min(recent_step_s_, last_step_s_);
  const double more = step_s > 0 ? kDelay_s / step_s : 0;
  return steps_done_ + kStepsAhead + static_cast<int64_t>(more);
}

bool StepWatch::stalls(double in_step_s, double running_s, double lease_s) const {
  const double limit_s = longest_step_s_ > 0 ? std::max(lease_s, kStall * longest_step_s_) : kFirstStep_s;
  return std::min(in_step_s, running_s) >= limit_s;
}

}  // namespace sailor
