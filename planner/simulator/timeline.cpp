#include "planner/simulator/timeline.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "planner/simulator/timeline_classic.h"
#include "planner/simulator/timeline_interleaved.h"

namespace sailor {
namespace {

using timeline_detail::Durations;
using timeline_detail::Record;
using timeline_detail::Ticks;
using timeline_detail::TimelineWork;

constexpr double StageTimes::*kFields[] = {&StageTimes::forward_s, &StageTimes::backward_s,
                                           &StageTimes::send_forward_s, &StageTimes::send_backward_s,
                                           &StageTimes::ready_s};

void check_times(std::span<const StageTimes> times, int stages) {
  for (size_t i = 0; i < times.size(); ++i)
    for (double StageTimes::*field : kFields)
      if (!std::isfinite(times[i].*field) || times[i].*field < 0)
        throw std::invalid_argument("timeline: stage " + std::to_string(i % stages) +
                                    ": a duration is negative or not finite");
}

// Sets the delays of split backwards.
void check_split(const PipelineSchedule& schedule, std::span<const StageTimes> times,
                 std::vector<int>& delays) {
  const auto is_split = [](const StageTimes& t) { return t.weight_delay != kWholeBackward; };
  if (std::none_of(times.begin(), times.end(), is_split)) return;
  if (schedule.chunks > 1 || schedule.forwards_first || schedule.p2p != P2p::asynchronous)
    throw std::invalid_argument("timeline: backwards are split with 1F1B and asynchronous sends only");
  for (size_t i = 0; i < times.size(); ++i) {
    const StageTimes& t = times[i];
    if (is_split(t) && (t.weight_delay < 0 || !(t.weight_s >= 0 && t.weight_s <= t.backward_s)))
      throw std::invalid_argument("timeline: stage " + std::to_string(i) + ": no part of a backward");
    delays.push_back(t.weight_delay);
  }
}

// Maximum microbatches that play_all() simulates.
double most_played(const PipelineSchedule& schedule, int stages, int microbatches) {
  if (schedule.forwards_first) return microbatches;
  return std::min<double>(microbatches, 3.0 * kExactMicrobatches + 8.0 * stages);
}

// The tick: the finest power of two with which everything, one after the other, still fits into 62 bits.
double tick_s(double microbatches, std::span<const StageTimes> times, std::span<const StageTimes> last) {
  double longest = 0;
  for (std::span<const StageTimes> all : {times, last})
    for (const StageTimes& t : all)
      for (double StageTimes::*field : kFields) longest = std::max(longest, t.*field);
  if (longest == 0) return 1;
  double sum = 0;  // in units of the longest, so that it cannot overflow
  for (std::span<const StageTimes> all : {times, last})
    for (const StageTimes& t : all)
      for (double StageTimes::*field : kFields) sum += t.*field / longest;
  int longest_exponent = 0, sum_exponent = 0;
  std::frexp(longest, &longest_exponent);
  std::frexp(sum * microbatches, &sum_exponent);
  // Not finer than numbers are: what is below the smallest normal number takes no time.
  return std::ldexp(1.0, std::max(longest_exponent + sum_exponent - 62, -1000));
}

// Rounded like std::llround(), for durations >= 0.
Ticks rounded(double ticks) {
  const auto whole = static_cast<Ticks>(ticks);
  return whole + (ticks - static_cast<double>(whole) >= 0.5 ? 1 : 0);
}

Durations in_ticks(std::span<const StageTimes> times, double tick_s) {
  Durations out;
  for (std::vector<Ticks>* durations :
       {&out.forward, &out.backward, &out.send_forward, &out.send_backward, &out.weights, &out.ready})
    durations->resize(times.size());
  const double per_s = 1 / tick_s;  // exact, for a power of two
  for (size_t at = 0; at < times.size(); ++at) {
    const StageTimes& t = times[at];
    out.forward[at] = rounded(t.forward_s * per_s);
    out.backward[at] = rounded(t.input_backward_s() * per_s);
    out.weights[at] = rounded((t.backward_s - t.input_backward_s()) * per_s);
    out.send_forward[at] = at + 1 == times.size() ? 0 : rounded(t.send_forward_s * per_s);
    out.send_backward[at] = at == 0 ? 0 : rounded(t.send_backward_s * per_s);
    out.ready[at] = rounded(t.ready_s * per_s);
  }
  return out;
}

template <class Player>
Timeline play(const TimelineWork& work, int64_t microbatches_per_unit) {
  Record record(work);
  Player player(work, record);
  const double skipped = timeline_detail::play_all(player, microbatches_per_unit, work.with_events);
  const auto seconds = [&](Ticks ticks) {
    return skipped > 0 ? (skipped + static_cast<double>(ticks)) * work.tick_s
                       : static_cast<double>(ticks) * work.tick_s;
  };
  Timeline out;
  out.stage_end_s.reserve(static_cast<size_t>(work.stages));
  out.last_backward_s.reserve(static_cast<size_t>(work.stages));
  out.chunk_end_s.reserve(record.chunk_end.size());
  for (int i = 0; i < work.stages; ++i) {
    out.stage_end_s.push_back(seconds(player.end_of(i)));
    out.makespan_s = std::max(out.makespan_s, out.stage_end_s.back());
    out.last_backward_s.push_back(seconds(record.last_backward[i]));
  }
  for (Ticks end : record.chunk_end) out.chunk_end_s.push_back(seconds(end));
  for (const auto& of_stage : record.events)
    out.events.insert(out.events.end(), of_stage.begin(), of_stage.end());
  for (auto& of_stage : record.transfers) {
    std::stable_sort(of_stage.begin(), of_stage.end(),
                     [](const TimelineEvent& a, const TimelineEvent& b) { return a.start_s < b.start_s; });
    out.transfers.insert(out.transfers.end(), of_stage.begin(), of_stage.end());
  }
  return out;
}

Timeline play(const TimelineWork& work) {
  using enum P2p;
  using namespace timeline_detail;
  if (work.chunks > 1) {
    if (work.p2p == asynchronous) return play<InterleavedPlayer<asynchronous>>(work, work.stages);
    return play<InterleavedPlayer<blocking>>(work, work.stages);
  }
  if (work.p2p == asynchronous) return play<ClassicPlayer<asynchronous>>(work, 1);
  if (work.p2p == asynchronous_in_turn) return play<ClassicPlayer<asynchronous_in_turn>>(work, 1);
  if (work.p2p == blocking) return play<ClassicPlayer<blocking>>(work, 1);
  return play<ClassicPlayer<blocking_in_turn>>(work, 1);
}

}  // namespace

Timeline pipeline_timeline(const PipelineSchedule& schedule, std::span<const StageTimes> times,
                           int microbatches, std::span<const StageTimes> last_microbatch, bool with_events) {
  const int stages = schedule.chunks > 0 ? static_cast<int>(times.size()) / schedule.chunks : 0;
  check_schedule(schedule, stages, microbatches);
  if (times.size() % static_cast<size_t>(schedule.chunks) != 0)
    throw std::invalid_argument("timeline: " + std::to_string(times.size()) + " durations for " +
                                std::to_string(schedule.chunks) + " chunks per stage");
  if (!last_microbatch.empty() && last_microbatch.size() != times.size())
    throw std::invalid_argument("timeline: the last microbatch has durations for other stages");
  check_times(times, stages);
  check_times(last_microbatch, stages);
  if (last_microbatch.empty()) last_microbatch = times;

  TimelineWork work;
  work.stages = stages;
  work.chunks = schedule.chunks;
  work.microbatches = microbatches;
  work.last_stage_warm_up = last_stage_warm_up(schedule, stages, microbatches);
  work.p2p = schedule.p2p;
  check_split(schedule, times, work.weight_delay);
  work.tick_s = tick_s(with_events ? microbatches : most_played(schedule, stages, microbatches), times,
                       last_microbatch);
  work.regular = in_ticks(times, work.tick_s);
  work.last = last_microbatch.data() == times.data() ? work.regular : in_ticks(last_microbatch, work.tick_s);
  work.with_events = with_events;
  Timeline out = play(work);
  out.stage_busy_s.assign(static_cast<size_t>(stages), 0);
  for (size_t at = 0; at < times.size(); ++at)
    out.stage_busy_s[at % stages] += (microbatches - 1.0) * (times[at].forward_s + times[at].backward_s) +
                                     last_microbatch[at].forward_s + last_microbatch[at].backward_s;
  return out;
}

TimelineFloor timeline_floor(const PipelineSchedule& schedule, std::span<const StageTimes> times,
                             int microbatches) {
  constexpr double kTicks = 1 - 1e-9;  // durations are rounded to ticks
  const size_t stages = times.size() / static_cast<size_t>(schedule.chunks);
  TimelineFloor floor;
  floor.chunk_end_s.resize(times.size());
  if (schedule.chunks > 1 || schedule.forwards_first || schedule.p2p != P2p::asynchronous) {
    double down_s = 0, up_s = 0;  // the way from the first stage, and back to it
    for (size_t i = 0; i < stages; ++i) {
      double busy_s = 0;
      for (size_t at = i; at < times.size(); at += stages)
        busy_s += times[at].forward_s + times[at].backward_s;
      down_s = std::max(down_s, times[i].ready_s);
      floor.makespan_s = std::max(floor.makespan_s, kTicks * (down_s + microbatches * busy_s + up_s));
      // After a chunk's last backward come those of lower chunks, of one group of microbatches.
      double later_s = 0;
      for (size_t at = i; at < times.size(); at += stages) {
        floor.chunk_end_s[at] = kTicks * std::max(0.0, times[i].ready_s + microbatches * busy_s - later_s);
        later_s += times[at].backward_s * (schedule.forwards_first
                                               ? microbatches
                                               : std::min<double>(microbatches, static_cast<double>(stages)));
      }
      if (i + 1 == times.size()) break;
      down_s += times[i].forward_s + times[i].send_forward_s;
      up_s += times[i].backward_s + times[i + 1].send_backward_s;
    }
    return floor;
  }
  double trip_s = 0;  // from the stage to the last one and back
  for (size_t i = 0; i < stages; ++i)
    trip_s += times[i].forward_s + times[i].input_backward_s() +
              (i + 1 < stages ? times[i].send_forward_s + times[i + 1].send_backward_s : 0);
  double down_s = 0, up_s = 0;  // the way from the first stage, and back to it
  double spacing_s = 0;         // of microbatches that arrive
  for (size_t i = 0; i < stages; ++i) {
    const StageTimes& t = times[i];
    down_s = std::max(down_s, t.ready_s);
    spacing_s = std::max(spacing_s, t.forward_s);
    const int held = static_cast<int>(stages - i);
    const int trips = (microbatches - 1) / held, rest = (microbatches - 1) % held;
    double& end_s = floor.chunk_end_s[i];
    const double send_s = i + 1 < stages ? t.send_forward_s : 0,
                 back_s = i + 1 < stages ? times[i + 1].send_backward_s : 0;
    // The last backward, for which the stage before waits, leaves some of the weights for later.
    const bool is_split = t.weight_delay != kWholeBackward;
    const double later_s = t.backward_s - t.input_backward_s();
    const int left = is_split ? std::min(microbatches, t.weight_delay + 1) : 0;
    const double computed_s = microbatches * (t.forward_s + t.backward_s);
    const double sent_s = std::max({computed_s - left * later_s, rest * spacing_s + (trips + 1) * trip_s,
                                    trip_s + (microbatches - 1) * std::max(send_s, back_s)});
    end_s = kTicks * (down_s + std::max(computed_s, sent_s + later_s));
    floor.makespan_s = std::max({floor.makespan_s, end_s, kTicks * (down_s + sent_s + up_s)});
    spacing_s = std::max(spacing_s, send_s);
    down_s += t.forward_s + send_s;
    up_s += t.input_backward_s() + back_s;
    trip_s -= t.forward_s + t.input_backward_s() + send_s + back_s;
  }
  return floor;
}

Timeline one_f_one_b(std::span<const StageTimes> stages, int microbatches, bool with_events) {
  return pipeline_timeline({}, stages, microbatches, {}, with_events);
}

}  // namespace sailor
