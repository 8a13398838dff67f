#include "planner/simulator/schedule.h"

#include <algorithm>
#include <limits>
#include <stdexcept>

namespace sailor {

ScheduledChunk scheduled_forward(const PipelineSchedule& schedule, int stages, int index) {
  if (schedule.chunks == 1) return {0, index};
  const int group = stages * schedule.chunks;
  return {index % group / stages, index / group * stages + index % stages};
}

ScheduledChunk scheduled_backward(const PipelineSchedule& schedule, int stages, int index) {
  ScheduledChunk of = scheduled_forward(schedule, stages, index);
  of.chunk = schedule.chunks - 1 - of.chunk;
  return of;
}

int last_stage_warm_up(const PipelineSchedule& schedule, int stages, int microbatches) {
  const bool one_group = schedule.chunks > 1 && microbatches == stages;
  if (schedule.forwards_first || (schedule.single_group_forwards_first && one_group))
    return schedule.chunks * microbatches;
  return (schedule.chunks - 1) * stages;
}

int warm_up_forwards(const PipelineSchedule& schedule, int stage, int stages, int microbatches) {
  const int behind = (stages - 1 - stage) * (schedule.chunks > 1 ? 2 : 1);
  return std::min(behind + last_stage_warm_up(schedule, stages, microbatches),
                  schedule.chunks * microbatches);
}

int most_in_flight(const PipelineSchedule& schedule, int stage, int stages, int microbatches) {
  return std::min(warm_up_forwards(schedule, stage, stages, microbatches) + 1,
                  schedule.chunks * microbatches);
}

void check_schedule(const PipelineSchedule& schedule, int stages, int microbatches) {
  if (stages < 1) throw std::invalid_argument("timeline: no stages");
  if (microbatches < 1) throw std::invalid_argument("timeline: microbatches must be at least 1");
  if (schedule.chunks < 1) throw std::invalid_argument("timeline: chunks must be at least 1");
  if (microbatches > std::numeric_limits<int>::max() / 2 / schedule.chunks)
    throw std::invalid_argument("timeline: " + std::to_string(microbatches) + " microbatches are too many");
  if (schedule.chunks == 1) return;
  if (stages < 2) throw std::invalid_argument("timeline: an interleaved schedule needs at least 2 stages");
  if (microbatches % stages != 0)
    throw std::invalid_argument("timeline: an interleaved schedule of " + std::to_string(stages) +
                                " stages needs a multiple of " + std::to_string(stages) +
                                " microbatches, not " + std::to_string(microbatches));
  if (schedule.p2p == P2p::blocking_in_turn || schedule.p2p == P2p::asynchronous_in_turn)
    throw std::invalid_argument("timeline: interleaved schedules exchange their messages at once");
}

}  // namespace sailor
