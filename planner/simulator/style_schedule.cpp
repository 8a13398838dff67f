#include "planner/simulator/style_schedule.h"

#include "planner/simulator/memory.h"

namespace sailor::native {

std::vector<int> chunks_in_flight(const PipelineSchedule& schedule, int group, int groups, int microbatches) {
  std::vector<int> held(static_cast<size_t>(schedule.chunks), 0);
  if (schedule.chunks == 1) {
    held[0] = in_flight(group, groups, microbatches);
    return held;
  }
  const int most = most_in_flight(schedule, group, groups, microbatches);
  for (int i = 0; i < most; ++i) ++held[static_cast<size_t>(scheduled_forward(schedule, groups, i).chunk)];
  return held;
}

PipelineSchedule schedule_of(const FrameworkStyle& style, int interleave, double message_bytes) {
  const bool buffered = message_bytes <= static_cast<double>(style.buffered_message_bytes);
  PipelineSchedule schedule;
  schedule.chunks = interleave;
  switch (style.sends) {
    case FrameworkStyle::Sends::asynchronous:
      schedule.p2p = P2p::asynchronous;
      break;
    case FrameworkStyle::Sends::asynchronous_in_turn:
      schedule.p2p = P2p::asynchronous_in_turn;
      break;
    case FrameworkStyle::Sends::blocking:
      schedule.p2p = buffered ? P2p::asynchronous : P2p::blocking;
      break;
    case FrameworkStyle::Sends::blocking_in_turn:
      schedule.p2p = buffered ? P2p::asynchronous_in_turn : P2p::blocking_in_turn;
      break;
  }
  schedule.single_group_forwards_first = style.forwards_first_single_group;
  return schedule;
}

}  // namespace sailor::native
