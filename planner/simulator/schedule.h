// The order in which the stages of a pipeline compute, and how they send messages: 1F1B, interleaved 1F1B,
// and all forwards before all backwards, with blocking or non-blocking sends.
//
// Every rank has `chunks` chunks of the model; a microbatch passes chunk 0 of stages 0 to P-1, then chunk 1
// of stages 0 to P-1, and so on. The order on a stage is fixed: W forwards (warm-up), then alternately one
// forward and one backward, then the remaining backwards. Pure and thread-safe.
#pragma once

namespace sailor {

// How a message between stages is sent.
// - asynchronous: the sender continues at once; a link transfers one message at a time in each direction; the
//   receiver waits only when it needs the message.
// - asynchronous_in_turn: the same, but a stage sends an activation only after it received the gradient for
//   its next operation (frameworks with single, non-blocking sends and receives). Not for interleaved
//   schedules.
// - blocking: a transfer starts when both ends have reached it, and blocks both until it is done. Messages
//   that neighbours exchange at the same point (an activation forward, a gradient backward) are transferred
//   concurrently (send_forward_recv_backward and the like), so no order of stages can deadlock.
// - blocking_in_turn: the same, but the gradient goes first and the activation after it (frameworks with
//   single sends and receives). Not for interleaved schedules.
enum class P2p { asynchronous, asynchronous_in_turn, blocking, blocking_in_turn };

struct PipelineSchedule {
  int chunks = 1;  // per stage; 1 is classic 1F1B
  P2p p2p = P2p::asynchronous;
  bool forwards_first = false;  // every forward before the first backward (GPipe, AFAB)
  // Interleaved only: forwards first if there are exactly as many microbatches as stages, like earlier
  // releases of the framework that introduced the schedule.
  bool single_group_forwards_first = false;
};

// One operation of a stage's sequence of forwards, or of its sequence of backwards.
struct ScheduledChunk {
  int chunk = 0;
  int microbatch = 0;

  bool operator==(const ScheduledChunk&) const = default;
};

// The `index`-th forward (backward) of any stage, 0 <= index < chunks x microbatches. Interleaved
// microbatches run in groups of P: the group's forwards through chunk 0, then chunk 1, ...; its backwards
// through the last chunk first.
ScheduledChunk scheduled_forward(const PipelineSchedule& schedule, int stages, int index);
ScheduledChunk scheduled_backward(const PipelineSchedule& schedule, int stages, int index);

// Forwards of a stage before its first backward.
//   classic: min(P - 1 - stage, M);  interleaved: min(2 (P - 1 - stage) + (chunks - 1) P, chunks M)
int warm_up_forwards(const PipelineSchedule& schedule, int stage, int stages, int microbatches);

// Maximum (microbatch, chunk) pairs whose activations a stage holds at the same time: one more than the
// warm-up, or all.
int most_in_flight(const PipelineSchedule& schedule, int stage, int stages, int microbatches);

// Throws std::invalid_argument unless the schedule exists for these numbers: all at least 1; interleaved: at
// least 2 stages, microbatches a multiple of the stages (the framework rejects others, too), and no
// `_in_turn` style.
void check_schedule(const PipelineSchedule& schedule, int stages, int microbatches);

// Forwards of the last stage before its first backward, not limited by their number: this fixes the order.
// Stage i has (classic) P - 1 - i or (interleaved) 2 (P - 1 - i) more.
int last_stage_warm_up(const PipelineSchedule& schedule, int stages, int microbatches);

}  // namespace sailor
