// The 1F1B schedule (PipeDream-Flush; Narayanan et al., 2021): what a stage computes, in which order. Pure.
//
// A stage starts with min(P - 1 - stage, microbatches) forwards (warm-up), then alternates one forward and
// one backward (steady), then does the remaining backwards (cool-down). It never holds the activations of
// more than min(P - stage, microbatches) microbatches.
#pragma once

#include <vector>

namespace sailor {

struct ScheduleStep {
  enum class Kind { forward, backward };
  Kind kind = Kind::forward;
  int microbatch = 0;

  bool operator==(const ScheduleStep&) const = default;
};

// Requires 0 <= stage < stages and microbatches >= 0.
std::vector<ScheduleStep> one_f_one_b(int stage, int stages, int microbatches);

// Most microbatches in flight on a stage under this schedule.
int most_in_flight(int stage, int stages, int microbatches);

}  // namespace sailor
