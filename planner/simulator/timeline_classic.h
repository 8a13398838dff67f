// Internal to the timeline: the classic schedules, one chunk per stage.
//
// With W_i = base + P - 1 - i (base 0 for 1F1B), block k of stage i is forward W_i + k and backward k, each
// if it exists; blocks from k = -W_i are the warm-up, the last W_i are the cool-down. Forward of block k is
// in slot 2k - i, backward in slot 2k - i + 1. Then
//
//     forward W_i + k needs forward W_(i-1) + (k - 1) of stage i - 1: slot 2(k-1) - (i-1), the slot before;
//     backward k needs backward k of stage i + 1:                     slot 2k - (i+1) + 1, the slot before.
//
// In a slot in which stage i does a forward, its neighbour i + 1 does a backward: exactly the two that
// exchange an activation and a gradient afterwards if sends block.
#pragma once

#include "planner/simulator/timeline_engine.h"

namespace sailor::timeline_detail {

template <P2p kP2p>
class ClassicPlayer {
 public:
  ClassicPlayer(const TimelineWork& work, Record& record)
      : work_(work), record_(record), P_(work.stages), warm_up_(work.last_stage_warm_up + P_ - 1) {
    free_.assign(work.regular.ready.begin(), work.regular.ready.begin() + P_);
    activation_.assign(P_ + 1, 0);
    gradient_.assign(P_ + 1, 0);
    for (const int delay : work_.weight_delay) most_delay_ = std::max(most_delay_, delay);
  }

  int64_t slots_per_unit() const { return 2; }
  int64_t first_slot() const { return -2 * warm_up_; }
  int64_t end_slot() const { return 2 * work_.microbatches; }
  // Stage 0 is the first to reach the last microbatch, by forward warm_up_ + unit.
  int64_t regular_units() const { return std::max<int64_t>(0, work_.microbatches - 1 - warm_up_); }

  // From when on every stage computes weights after each of its backwards.
  int64_t first_regular_unit() const { return std::max(0, most_delay_); }

  template <bool kRegular>
  void play(int64_t slot) {
    const int odd = static_cast<int>(slot & 1);
    for (int i = odd; i < P_; i += 2) forward<kRegular>(i, (slot + i) / 2);
    for (int i = 1 - odd; i < P_; i += 2) backward<kRegular>(i, (slot + i - 1) / 2);
    if constexpr (kP2p == P2p::asynchronous_in_turn)
      for (int i = odd; i + 1 < P_; i += 2) send_activation<kRegular>(i, (slot + i) / 2);
    else if constexpr (kP2p != P2p::asynchronous)
      for (int i = odd; i + 1 < P_; i += 2) exchange<kRegular>(i, (slot + i) / 2);
  }

  // The state between two units, relative to the returned time.
  Ticks observe(std::vector<Ticks>& state) const {
    state.clear();
    const Ticks origin = free_[0];
    for (int i = 1; i < P_; ++i) state.push_back(free_[i] - origin);
    if constexpr (kSendsAhead) {
      for (int i = 1; i < P_; ++i) state.push_back(activation_[i] - origin);
      for (int i = 1; i < P_; ++i) state.push_back(gradient_[i] - origin);
    }
    return origin;
  }
  Ticks end_of(int stage) const { return free_[stage]; }

 private:
  using Kind = TimelineEvent::Kind;
  static constexpr bool kSendsAhead = kP2p == P2p::asynchronous || kP2p == P2p::asynchronous_in_turn;

  bool exists(int64_t index) const { return index >= 0 && index < work_.microbatches; }

  template <bool kRegular>
  void forward(int i, int64_t block) {
    const int64_t m = warm_up_ - i + block;
    if (!kRegular && !exists(m)) return;
    const Durations& times = kRegular ? work_.regular : work_.of(m);
    Ticks start = free_[i];
    if constexpr (kSendsAhead) start = std::max(start, activation_[i]);
    const Ticks end = free_[i] = start + times.forward[i];
    if constexpr (kP2p == P2p::asynchronous) {
      const Ticks sent = std::max(end, activation_[i + 1]);
      activation_[i + 1] = sent + times.send_forward[i];
      if (!kRegular && i + 1 < P_) record_.transfer(Kind::send_forward, i, 0, m, sent, activation_[i + 1]);
    }
    if (!kRegular) record_.operation(Kind::forward, i, 0, m, start, end);
  }

  template <bool kRegular>
  void backward(int i, int64_t block) {
    if (!kRegular && !exists(block)) return;
    const Durations& times = kRegular ? work_.regular : work_.of(block);
    Ticks start = free_[i];
    if constexpr (kSendsAhead) start = std::max(start, gradient_[i + 1]);
    const Ticks end = free_[i] = start + times.backward[i];
    if constexpr (kSendsAhead) {
      const Ticks sent = std::max(end, gradient_[i]);
      gradient_[i] = sent + times.send_backward[i];
      if (!kRegular && i > 0) record_.transfer(Kind::send_backward, i, 0, block, sent, gradient_[i]);
    }
    if (!kRegular) record_.operation(Kind::backward, i, 0, block, start, end);
    if (most_delay_ != kWholeBackward) weights<kRegular>(i, block);
  }

  // After the first part of the backward of `block`: the second one of those that are due.
  template <bool kRegular>
  void weights(int i, int64_t block) {
    const int delay = work_.weight_delay[i];
    if (delay == kWholeBackward) return;
    if constexpr (kRegular) {
      free_[i] += work_.regular.weights[i];
      return;
    }
    const int64_t end = block + 1 == work_.microbatches ? work_.microbatches : block - delay + 1;
    for (int64_t m = std::max<int64_t>(0, block - delay); m < end; ++m) {
      const Ticks start = free_[i];
      free_[i] = start + work_.of(m).weights[i];
      record_.operation(Kind::weights, i, 0, m, start, free_[i]);
    }
  }

  // Stage i has finished its forward of `block`; before it sends the result, it waits for the gradient of its
  // next backward.
  template <bool kRegular>
  void send_activation(int i, int64_t block) {
    const int64_t m = warm_up_ - i + block;
    if (!kRegular && !exists(m)) return;
    Ticks sent = std::max(free_[i], activation_[i + 1]);
    if (kRegular || exists(block)) sent = std::max(sent, gradient_[i + 1]);
    activation_[i + 1] = sent + (kRegular ? work_.regular : work_.of(m)).send_forward[i];
    if (!kRegular) record_.transfer(Kind::send_forward, i, 0, m, sent, activation_[i + 1]);
  }

  // Stage i has finished its forward of `block`, stage i + 1 its backward of the same block, if they exist.
  template <bool kRegular>
  void exchange(int i, int64_t block) {
    const int64_t m = warm_up_ - i + block;
    const bool down = kRegular || exists(m), up = kRegular || exists(block);
    if (!down && !up) return;
    const Ticks start = std::max(free_[i], free_[i + 1]);
    const Ticks up_s = up ? (kRegular ? work_.regular : work_.of(block)).send_backward[i + 1] : 0;
    const Ticks down_s = down ? (kRegular ? work_.regular : work_.of(m)).send_forward[i] : 0;
    const Ticks down_start = kP2p == P2p::blocking_in_turn ? start + up_s : start;
    free_[i] = free_[i + 1] = std::max(start + up_s, down_start + down_s);
    if (kRegular) return;
    if (up) record_.transfer(Kind::send_backward, i + 1, 0, block, start, start + up_s);
    if (down) record_.transfer(Kind::send_forward, i, 0, m, down_start, down_start + down_s);
  }

  const TimelineWork& work_;
  Record& record_;
  const int P_;
  const int64_t warm_up_;  // W_0
  int most_delay_ = kWholeBackward;
  std::vector<Ticks> free_;        // when a stage is free
  std::vector<Ticks> activation_;  // [i]: when the newest activation for stage i arrived and its link is free
  std::vector<Ticks> gradient_;    // [i + 1]: the same for the newest gradient for stage i
};

}  // namespace sailor::timeline_detail
