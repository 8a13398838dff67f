// One iteration of a pipeline as a timeline: which stage computes or communicates what, when.
//
// Input is durations, output is start and end times, independent of models, GPUs and prices. The order of
// operations is that of the schedule (schedule.h), so a timeline is a longest path: a shorter duration cannot
// make anything later. Times are computed in integer ticks of at most 2^-62 of a bound on the makespan, so
// they do not depend on the order of additions, and a steady state repeats exactly. Pure and thread-safe.
#pragma once

#include <span>
#include <vector>

#include "planner/simulator/schedule.h"
#include "planner/spec/split_backward.h"

namespace sailor {

// One chunk of a stage (the whole stage in a classic schedule).
struct StageTimes {
  double forward_s = 0;  // one microbatch, communication between stages excluded
  double backward_s = 0;
  double send_forward_s = 0;   // activation to the next chunk of the model; ignored on the last
  double send_backward_s = 0;  // gradient to the previous chunk; ignored on the first
  // With a split backward: the part of backward_s that is computed this many microbatches later, and after
  // the last backward for those that are left. Classic schedules with asynchronous sends only.
  double weight_s = 0;
  int weight_delay = kWholeBackward;
  // Of the first chunk: the stage does not compute before, as it still updates after the iteration before.
  double ready_s = 0;

  double input_backward_s() const {
    return weight_delay == kWholeBackward ? backward_s : backward_s - weight_s;
  }
};

struct TimelineEvent {
  // With a split backward `backward` is its first part, and `weights` the second.
  enum class Kind { forward, backward, weights, send_forward, send_backward, sync, update };
  Kind kind;
  int stage;       // of a message: the sender
  int microbatch;  // of sync and update: -1
  double start_s;
  double end_s;
  int chunk = 0;
};

struct Timeline {
  double makespan_s = 0;                 // the last of stage_end_s
  std::vector<double> stage_end_s;       // last computation done and, with blocking sends, its gradient sent
  std::vector<double> stage_busy_s;      // total computation time of the stage
  std::vector<double> last_backward_s;   // begin of the stage's last computation
  std::vector<double> chunk_end_s;       // [chunk x stages + stage]: end of its last backward, both parts
  std::vector<TimelineEvent> events;     // computation; only on request; by stage, then start
  std::vector<TimelineEvent> transfers;  // messages; only on request; by sender, then start
};

// Up to this many microbatches are simulated one by one if no steady state repeats before. Beyond it, the
// rate over the last half of them is extrapolated, with an error of less than one microbatch in this many.
inline constexpr int kExactMicrobatches = 16384;

// Returns the timeline of `microbatches` microbatches under `schedule`. `times` is in the order of the model:
// chunk 0 of every stage, then chunk 1 of every stage, and so on. `last_microbatch`, if not empty, has the
// times of the very last microbatch, which may be smaller. Requires what check_schedule() does, and durations
// finite and >= 0: throws std::invalid_argument naming the stage. Exact for the durations given. Cost:
// O(stages x chunks x microbatches until the steady state repeats, detected exactly); with events, which are
// never skipped, O(stages x chunks x microbatches). Source: Narayanan et al., 2021, section 2.2, and the
// framework published with it.
Timeline pipeline_timeline(const PipelineSchedule& schedule, std::span<const StageTimes> times,
                           int microbatches, std::span<const StageTimes> last_microbatch = {},
                           bool with_events = false);

// Lower bounds on every timeline with these durations, in O(stages): close for classic 1F1B with asynchronous
// sends, the computation alone for other schedules. For every stage i: its computation after the first
// microbatch reached it; the same for its link; and, as it holds at most P - i microbatches, a round trip to
// the last stage and back for every P - i of them. Of a split backward only the first part is on the way
// back.
struct TimelineFloor {
  double makespan_s = 0;
  std::vector<double> chunk_end_s;  // as in Timeline
};
TimelineFloor timeline_floor(const PipelineSchedule& schedule, std::span<const StageTimes> times,
                             int microbatches);

// Classic 1F1B with asynchronous sends, the schedule of trainer/parallel/schedule.h.
Timeline one_f_one_b(std::span<const StageTimes> stages, int microbatches, bool with_events = false);

}  // namespace sailor
