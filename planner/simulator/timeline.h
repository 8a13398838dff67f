// One iteration of a pipeline as a timeline: which stage computes or communicates what, when.
//
// Input is durations, output is start and end times; nothing here knows models, GPUs or prices. The schedule
// is the one that trainer/pipeline/one_f_one_b.h executes: min(P - 1 - i, M) warm-up forwards on stage i,
// then one forward and one backward in turn, then the remaining backwards; sends are asynchronous, receives
// block. Pure and thread-safe.
#pragma once

#include <span>
#include <vector>

namespace sailor {

struct StageTimes {
  double forward_s = 0;  // one microbatch through the stage, communication excluded
  double backward_s = 0;
  double send_forward_s = 0;   // activation to the next stage; ignored on the last
  double send_backward_s = 0;  // gradient to the previous stage; ignored on the first
};

struct TimelineEvent {
  enum class Kind { forward, backward };
  Kind kind;
  int stage;
  int microbatch;
  double start_s;
  double end_s;
};

struct Timeline {
  double makespan_s = 0;
  std::vector<double> stage_end_s;    // when each stage finished its last backward
  std::vector<double> stage_busy_s;   // sum of its computation
  std::vector<TimelineEvent> events;  // only when asked for; by stage, then start
};

// Up to this many microbatches are played one by one; beyond it the steady state's rate, measured over the
// last half of them, is continued, which is off by less than one microbatch in this many.
inline constexpr int kExactMicrobatches = 16384;

// Returns the timeline of `microbatches` microbatches through `stages` (first to last) under 1F1B.
// Requires: stages not empty, microbatches >= 1, durations finite and >= 0 (throws std::invalid_argument
// naming the stage). Cost: O(stages x min(microbatches, kExactMicrobatches)); with events, which are never
// extrapolated, O(stages x microbatches). Source: PipeDream-2BW section 3; Sailor section 4.3.
Timeline one_f_one_b(std::span<const StageTimes> stages, int microbatches, bool with_events = false);

}  // namespace sailor
