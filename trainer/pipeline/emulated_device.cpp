#include "trainer/pipeline/emulated_device.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "planner/profile/host_link.h"
#include "planner/profile/split_tokens.h"
#include "planner/spec/error.h"

namespace sailor {
namespace {

struct NearestCell {
  const LayerProfile::Cell* cell = nullptr;
  int microbatch = 0;
};

NearestCell nearest_cell(const LayerProfile& profile, ReplicaShape shape, int sequences) {
  NearestCell nearest;
  for (const auto& [key, cell] : profile.cells) {
    const auto [microbatch, cell_shape] = key;
    if (cell_shape != ReplicaShape{.tp = shape.tp}) continue;
    if (!nearest.cell || std::abs(microbatch - sequences) < std::abs(nearest.microbatch - sequences))
      nearest = {&cell, microbatch};
  }
  return nearest;
}

// Absolute on the steady clock, so that an interrupted sleep or a late wake-up does not add up.
void sleep_until(Pacer::Clock::time_point when) {
  const auto since_epoch =
      std::chrono::duration_cast<std::chrono::nanoseconds>(when.time_since_epoch()).count();
  timespec until{.tv_sec = since_epoch / 1'000'000'000, .tv_nsec = since_epoch % 1'000'000'000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
}

}  // namespace

double profiled_time_s(const LayerProfile& profile, const PhaseWork& work, double host_bytes_per_s) {
  const NearestCell nearest = nearest_cell(profile, work.shape, work.sequences);
  if (!nearest.cell)
    throw InputError({profile.file, 0},
                     fmt::format("GPU type {}: TP degree {} was not measured; run `sailor profile --tp {}`",
                                 profile.gpu_type, work.shape.tp, work.shape.tp));
  LayerProfile::Cell cell = *nearest.cell;
  share_context(cell, profile, nearest.microbatch, work.shape);
  const double cells = static_cast<double>(work.sequences) / nearest.microbatch;
  double time_s = 0;
  for (int layer = work.first_layer; layer < work.end_layer; ++layer) {
    LayerTimes& times = cell.at(static_cast<size_t>(layer));
    const bool block = layer > 0 && layer + 1 < static_cast<int>(cell.size());
    switch (work.phase) {
      case Phase::forward:
        time_s += times.forward_s;
        break;
      case Phase::backward:
        time_s += times.backward_s;
        times.host_s = host_s(times, {.bytes_per_s = host_bytes_per_s},
                              static_cast<double>(work.offloaded_bytes) / cells);
        if (block) time_s += times.again_s(work.recompute.of_block(layer - work.first_block));
        if (block && work.split) time_s -= times.weight_s;
        break;
      case Phase::weights:
        if (block) time_s += times.weight_s;
        break;
      case Phase::update:
        time_s += times.update_s / work.update_parts;
        break;
    }
  }
  if (work.phase != Phase::update) return time_s * cells;
  if (work.offloaded_bytes == 0 || host_bytes_per_s <= 0) return time_s;
  return std::max(time_s, static_cast<double>(work.offloaded_bytes) / host_bytes_per_s);
}

EmulatedDevice::EmulatedDevice(LayerProfile profile, double host_bytes_per_s)
    : profile_(std::move(profile)), host_bytes_per_s_(host_bytes_per_s) {}

EmulatedDevice::Clock::time_point EmulatedDevice::latest(Clock::time_point start) const {
  int64_t start_ns = std::chrono::nanoseconds(start.time_since_epoch()).count();
  for (Communicator* group : groups_)
    if (group) group->all_reduce(&start_ns, 1, ElementType::i64, ReduceOp::max);
  return Clock::time_point(std::chrono::nanoseconds(start_ns));
}

void EmulatedDevice::part_computed(const PhaseWork& part, Clock::time_point start) {
  const std::chrono::duration<double> emulated(profiled_time_s(profile_, part, host_bytes_per_s_) +
                                               part.waited_s);
  sleep_until(latest(start) + std::chrono::duration_cast<Clock::duration>(emulated));
}

void EmulatedDevice::computed(const PhaseWork& work, Clock::time_point start) {
  const double emulated_s = profiled_time_s(profile_, work, host_bytes_per_s_);
  start = latest(start);
  const double real_s = std::chrono::duration<double>(Clock::now() - start).count() - work.waited_s;
  ++counters_.tasks;
  counters_.emulated_s += emulated_s;
  counters_.real_s += real_s;
  if (real_s > emulated_s) {
    ++counters_.overrun_tasks;
    counters_.overrun_s += real_s - emulated_s;
    return;
  }
  const std::chrono::duration<double> all(emulated_s + work.waited_s);
  sleep_until(start + std::chrono::duration_cast<Clock::duration>(all));
}

}  // namespace sailor
