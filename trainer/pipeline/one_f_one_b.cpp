#include "trainer/pipeline/one_f_one_b.h"

#include <algorithm>

namespace sailor {

std::vector<ScheduleStep> one_f_one_b(int stage, int stages, int microbatches) {
  const int warm_up = std::min(stages - 1 - stage, microbatches);
  std::vector<ScheduleStep> steps;
  steps.reserve(2 * static_cast<std::size_t>(microbatches));
  for (int m = 0; m < microbatches; ++m) {
    steps.push_back({ScheduleStep::Kind::forward, m});
    if (m >= warm_up) steps.push_back({ScheduleStep::Kind::backward, m - warm_up});
  }
  for (int m = microbatches - warm_up; m < microbatches; ++m)
    steps.push_back({ScheduleStep::Kind::backward, m});
  return steps;
}

int most_in_flight(int stage, int stages, int microbatches) {
  return std::min(stages - stage, microbatches);
}

}  // namespace sailor
