// Internal to the timeline: the interleaved schedules, two or more chunks per stage.
//
// With W_i = base + 2 (P - 1 - i) (base (v - 1) P for 1F1B), block k of stage i is forward W_i + k, then
// backward k, in the order of scheduled_forward() and scheduled_backward(). Block k of stage i is in slot k -
// i. All inputs come from the slot before:
//
//     forward q = W_i + k needs forward q of stage i - 1, in block k - 2:   slot (k-2) - (i-1);
//     on stage 0, forward q - P of stage P - 1, in block k + P - 2:         slot (k+P-2) - (P-1);
//     backward k needs backward k of stage i + 1:                           slot k - (i+1);
//     on stage P - 1, backward k - P of stage 0:                            slot k - P.
//
// If sends block, a stage ends a block with one exchange: it sends its result and receives the input of its
// next block, so that in a slot each stage exchanges with both neighbours.
#pragma once

#include "planner/simulator/timeline_engine.h"

namespace sailor::timeline_detail {

template <P2p kP2p>
class InterleavedPlayer {
 public:
  InterleavedPlayer(const TimelineWork& work, Record& record)
      : work_(work),
        record_(record),
        P_(work.stages),
        operations_(work.chunks * work.microbatches),
        warm_up_(work.last_stage_warm_up + 2 * (P_ - 1)) {
    free_.assign(work.regular.ready.begin(), work.regular.ready.begin() + P_);
    for (std::vector<Ticks>* times : {&activation_, &gradient_, &next_activation_, &next_gradient_})
      times->assign(P_, 0);
    done_.assign(P_, 0);
  }

  // One group of microbatches through all chunks.
  int64_t first_regular_unit() const { return 0; }
  int64_t slots_per_unit() const { return static_cast<int64_t>(P_) * work_.chunks; }
  int64_t first_slot() const { return -warm_up_; }
  int64_t end_slot() const { return operations_; }
  // Stage 0 is the first to reach the last group, by forward warm_up_ + slot; stage P - 1 is P - 1 backwards
  // ahead of the slot.
  int64_t regular_units() const {
    const int64_t slots = operations_ - slots_per_unit() - warm_up_;
    return slots > 0 ? slots / slots_per_unit() : 0;
  }

  template <bool kRegular>
  void play(int64_t slot) {
    // Within a slot at most two groups of P operations are in progress in each direction.
    const int64_t q = warm_up_ + slot;  // forward of stage 0; of stage i: q - i
    const int forward_split = static_cast<int>(modulo(q, P_));
    const int forward_chunk[2] = {chunk_of(q), chunk_of(q - P_)};
    const int backward_split = P_ - 1 - static_cast<int>(modulo(slot, P_));
    const int backward_chunk[2] = {work_.chunks - 1 - chunk_of(slot), work_.chunks - 1 - chunk_of(slot + P_)};
    for (int i = 0; i < P_; ++i) {
      const int down = forward_chunk[i > forward_split];
      const int up = backward_chunk[i > backward_split];
      if constexpr (kP2p == P2p::asynchronous) {
        forward<kRegular>(i, down, q - i);
        backward<kRegular>(i, up, slot + i);
      } else {
        compute<kRegular>(i, down, up, q - i, slot + i);
      }
    }
    if constexpr (kP2p == P2p::asynchronous) {
      activation_.swap(next_activation_);
      gradient_.swap(next_gradient_);
      return;
    }
    // Every end of a transfer waits for it; done_ has when each stage reached the exchange.
    done_ = free_;
    for (int i = 0; i < P_; ++i) send_forward<kRegular>(i, forward_chunk[i > forward_split], q - i);
    for (int i = 0; i < P_; ++i) send_backward<kRegular>(i, backward_chunk[i > backward_split], slot + i);
  }

  Ticks observe(std::vector<Ticks>& state) const {
    state.clear();
    const Ticks origin = free_[0];
    for (int i = 1; i < P_; ++i) state.push_back(free_[i] - origin);
    if constexpr (kP2p == P2p::asynchronous) {
      for (int i = 0; i < P_; ++i) state.push_back(activation_[i] - origin);
      for (int i = 0; i < P_; ++i) state.push_back(gradient_[i] - origin);
    }
    return origin;
  }
  Ticks end_of(int stage) const { return free_[stage]; }

 private:
  using Kind = TimelineEvent::Kind;

  static int64_t modulo(int64_t a, int64_t b) { return (a % b + b) % b; }
  // Of the index-th forward; for indices that do not exist, any chunk.
  int chunk_of(int64_t index) const { return static_cast<int>(modulo(index, slots_per_unit()) / P_); }
  int64_t microbatch_of(int64_t index) const { return index / slots_per_unit() * P_ + index % P_; }
  bool exists(int64_t index) const { return index >= 0 && index < operations_; }
  size_t at(int stage, int chunk) const { return static_cast<size_t>(chunk) * P_ + stage; }
  int next(int i) const { return i + 1 < P_ ? i + 1 : 0; }
  int previous(int i) const { return i > 0 ? i - 1 : P_ - 1; }
  bool first(int i, int chunk) const { return i == 0 && chunk == 0; }
  bool last(int i, int chunk) const { return i + 1 == P_ && chunk + 1 == work_.chunks; }

  template <bool kRegular>
  const Durations& times(int64_t index) const {
    return !kRegular && of_last_microbatch(index) ? work_.last : work_.regular;
  }
  bool of_last_microbatch(int64_t index) const {
    return index >= operations_ - slots_per_unit() && (operations_ - 1 - index) % P_ == 0;
  }
  void note(Kind kind, int i, int chunk, int64_t index, Ticks start, Ticks end) {
    if (work_.with_events || of_last_microbatch(index))
      record_.operation(kind, i, chunk, microbatch_of(index), start, end);
  }
  void note_transfer(Kind kind, int i, int chunk, int64_t index, Ticks start, Ticks end) {
    if (work_.with_events) record_.transfer(kind, i, chunk, microbatch_of(index), start, end);
  }

  template <bool kRegular>
  void forward(int i, int chunk, int64_t q) {
    const int to = next(i);
    next_activation_[to] = activation_[to];
    if (!kRegular && !exists(q)) return;
    const Durations& t = times<kRegular>(q);
    const Ticks start = first(i, chunk) ? free_[i] : std::max(free_[i], activation_[i]);
    const Ticks end = free_[i] = start + t.forward[at(i, chunk)];
    if (!kRegular) note(Kind::forward, i, chunk, q, start, end);
    if (last(i, chunk)) return;
    const Ticks sent = std::max(end, activation_[to]);
    next_activation_[to] = sent + t.send_forward[at(i, chunk)];
    if (!kRegular) note_transfer(Kind::send_forward, i, chunk, q, sent, next_activation_[to]);
  }

  template <bool kRegular>
  void backward(int i, int chunk, int64_t k) {
    const int to = previous(i);
    next_gradient_[to] = gradient_[to];
    if (!kRegular && !exists(k)) return;
    const Durations& t = times<kRegular>(k);
    const Ticks start = last(i, chunk) ? free_[i] : std::max(free_[i], gradient_[i]);
    const Ticks end = free_[i] = start + t.backward[at(i, chunk)];
    if (!kRegular) note(Kind::backward, i, chunk, k, start, end);
    if (first(i, chunk)) return;
    const Ticks sent = std::max(end, gradient_[to]);
    next_gradient_[to] = sent + t.send_backward[at(i, chunk)];
    if (!kRegular) note_transfer(Kind::send_backward, i, chunk, k, sent, next_gradient_[to]);
  }

  template <bool kRegular>
  void compute(int i, int forward_chunk, int backward_chunk, int64_t q, int64_t k) {
    if (kRegular || exists(q)) {
      const Ticks start = free_[i];
      free_[i] += times<kRegular>(q).forward[at(i, forward_chunk)];
      if (!kRegular) note(Kind::forward, i, forward_chunk, q, start, free_[i]);
    }
    if (kRegular || exists(k)) {
      const Ticks start = free_[i];
      free_[i] += times<kRegular>(k).backward[at(i, backward_chunk)];
      if (!kRegular) note(Kind::backward, i, backward_chunk, k, start, free_[i]);
    }
  }

  template <bool kRegular>
  void send_forward(int i, int chunk, int64_t q) {
    if ((!kRegular && !exists(q)) || last(i, chunk)) return;
    const int to = next(i);
    const Ticks start = std::max(done_[i], done_[to]);
    const Ticks end = start + times<kRegular>(q).send_forward[at(i, chunk)];
    free_[i] = std::max(free_[i], end);
    free_[to] = std::max(free_[to], end);
    if (!kRegular) note_transfer(Kind::send_forward, i, chunk, q, start, end);
  }

  template <bool kRegular>
  void send_backward(int i, int chunk, int64_t k) {
    if ((!kRegular && !exists(k)) || first(i, chunk)) return;
    const int to = previous(i);
    // A stage whose warm-up was all its forwards asks for its first gradient after its last activation left.
    const bool after_all_forwards = !kRegular && i > 0 && k == 0 && warm_up_ - 2 * to >= operations_;
    const Ticks start = std::max(done_[i], after_all_forwards ? free_[to] : done_[to]);
    const Ticks end = start + times<kRegular>(k).send_backward[at(i, chunk)];
    free_[i] = std::max(free_[i], end);
    free_[to] = std::max(free_[to], end);
    if (!kRegular) note_transfer(Kind::send_backward, i, chunk, k, start, end);
  }

  const TimelineWork& work_;
  Record& record_;
  const int P_;
  const int64_t operations_;  // of a stage in each direction
  const int64_t warm_up_;     // W_0
  std::vector<Ticks> free_;   // when a stage is free
  // When the newest message for a stage arrived and its link is free: before the slot, after the slot.
  std::vector<Ticks> activation_, gradient_, next_activation_, next_gradient_;
  std::vector<Ticks> done_;
};

}  // namespace sailor::timeline_detail
