// Internal to the timeline: durations in ticks, records of simulated operations, and the loop that simulates
// a schedule slot by slot and skips whole periods of its steady state.
//
// A player (timeline_classic.h, timeline_interleaved.h) divides its schedule into slots such that all inputs
// of a slot's operations were computed in the slot before, for any durations: no queue, no search for
// runnable operations. In the regular slots every stage computes and every microbatch has the same durations;
// they form units of slots_per_unit() (one microbatch, or one group of them) whose pattern repeats, from
// first_regular_unit() on.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "planner/simulator/timeline.h"

namespace sailor::timeline_detail {

using Ticks = int64_t;

// By [chunk x stages + stage]; messages without a receiver take 0.
struct Durations {
  std::vector<Ticks> forward, backward, send_forward, send_backward;
  std::vector<Ticks> weights;  // of split backwards, whose first part is in `backward`; else 0
  std::vector<Ticks> ready;
};

struct TimelineWork {
  int stages = 1;
  int chunks = 1;
  int64_t microbatches = 1;
  int64_t last_stage_warm_up = 0;
  std::vector<int> weight_delay;  // by stage, kWholeBackward or more; empty: no backward is split
  P2p p2p = P2p::asynchronous;
  Durations regular;
  Durations last;  // of the last microbatch
  double tick_s = 1;
  bool with_events = false;

  const Durations& of(int64_t microbatch) const { return microbatch + 1 == microbatches ? last : regular; }
};

// Records of the simulated operations.
struct Record {
  explicit Record(const TimelineWork& work)
      : work(work),
        chunk_end(static_cast<size_t>(work.stages) * work.chunks),
        last_backward(work.stages),
        events(work.with_events ? work.stages : 0),
        transfers(work.with_events ? work.stages : 0) {}

  void operation(TimelineEvent::Kind kind, int stage, int chunk, int64_t microbatch, Ticks start, Ticks end) {
    const bool ends = kind == TimelineEvent::Kind::backward || kind == TimelineEvent::Kind::weights;
    if (ends && microbatch + 1 == work.microbatches) {
      chunk_end[static_cast<size_t>(chunk) * work.stages + stage] = end;
      last_backward[stage] = start;
    }
    if (work.with_events) events[stage].push_back(event(kind, stage, chunk, microbatch, start, end));
  }
  void transfer(TimelineEvent::Kind kind, int stage, int chunk, int64_t microbatch, Ticks start, Ticks end) {
    if (work.with_events) transfers[stage].push_back(event(kind, stage, chunk, microbatch, start, end));
  }
  TimelineEvent event(TimelineEvent::Kind kind, int stage, int chunk, int64_t microbatch, Ticks start,
                      Ticks end) const {
    return {kind,
            stage,
            static_cast<int>(microbatch),
            static_cast<double>(start) * work.tick_s,
            static_cast<double>(end) * work.tick_s,
            chunk};
  }

  const TimelineWork& work;
  std::vector<Ticks> chunk_end;                               // [chunk x stages + stage]
  std::vector<Ticks> last_backward;                           // by stage, when it began
  std::vector<std::vector<TimelineEvent>> events, transfers;  // by stage
};

// Detects that a state was seen before (Brent's algorithm: the state kept for comparison is renewed at
// doubling distances, so every period is found after a few repetitions).
class Cycle {
 public:
  // Returns the units since an equal state, or 0. `origin` is the time that the entries of the state are
  // relative to.
  int64_t seen(const std::vector<Ticks>& state, int64_t unit, Ticks origin) {
    if (any_ && state == state_) return unit - unit_;
    if (!any_ || unit - unit_ >= distance_) {
      if (any_) distance_ *= 2;
      any_ = true;
      state_ = state;
      unit_ = unit;
      origin_ = origin;
    }
    return 0;
  }
  Ticks origin() const { return origin_; }

 private:
  bool any_ = false;  // is a state kept?
  std::vector<Ticks> state_;
  int64_t unit_ = 0;
  int64_t distance_ = 1;
  Ticks origin_ = 0;
};

// Simulates everything. Returns the ticks that skipped periods add to every later time. Regular slots are not
// recorded, so all slots count as irregular when events are wanted.
template <class Player>
double play_all(Player& player, int64_t microbatches_per_unit, bool with_events) {
  const int64_t units = with_events ? 0 : player.regular_units();
  bool may_skip = true;
  const int64_t patience = std::max<int64_t>(2, kExactMicrobatches / microbatches_per_unit);
  double skipped = 0;
  Cycle cycle;
  std::vector<Ticks> state;
  Ticks halfway = 0;
  const int64_t slots = player.slots_per_unit();
  for (int64_t slot = player.first_slot(); slot < 0; ++slot) player.template play<false>(slot);
  int64_t unit = 0;
  for (; unit < std::min(units, player.first_regular_unit()); ++unit)
    for (int64_t i = 0; i < slots; ++i) player.template play<false>(unit * slots + i);
  while (unit < units) {
    if (may_skip) {
      const Ticks origin = player.observe(state);
      if (unit == patience / 2) halfway = origin;
      int64_t period = cycle.seen(state, unit, origin);
      Ticks length = period > 0 ? origin - cycle.origin() : 0;
      if (period == 0 && unit == patience) {
        period = patience - patience / 2;
        length = origin - halfway;
      }
      if (period > 0) {
        const int64_t times = (units - unit) / period;
        skipped = static_cast<double>(times) * static_cast<double>(length);
        unit += times * period;
        may_skip = false;
        continue;
      }
    }
    for (int64_t i = 0; i < slots; ++i) player.template play<true>(unit * slots + i);
    ++unit;
  }
  for (int64_t slot = units * slots; slot < player.end_slot(); ++slot) player.template play<false>(slot);
  return skipped;
}

}  // namespace sailor::timeline_detail
