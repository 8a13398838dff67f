#include "profiler/crowd_bench.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <new>
#include <numeric>
#include <set>
#include <string_view>
#include <utility>

#include "planner/process/seconds_since.h"
#include "profiler/link_bench.h"
#include "trainer/gpu/gpu.h"
#include "trainer/model/torch_device.h"

namespace sailor {
namespace {

double busy_s(const LayerMeasurement& m) {
  return m.times.forward_s + m.times.backward_s;
}

// Student's t for a two-sided 95 % interval of the mean of `samples`.
double student_95(size_t samples) {
  constexpr std::array<double, 11> kTable = {0, 0, 12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26};
  return samples < kTable.size() ? kTable[samples] : 2.23;
}

// What a TP group takes, of what its members measured together.
StackBench::ByKind slowest(const StackBench::ByKind* members, int count) {
  StackBench::ByKind result = members[0];
  for (int i = 1; i < count; ++i)
    for (size_t k = 0; k < result.size(); ++k)
      if (busy_s(members[i][k]) > busy_s(result[k])) result[k] = members[i][k];
  return result;
}

StackBench::ByKind mean(const std::vector<StackBench::ByKind>& groups) {
  StackBench::ByKind result = groups[0];
  const auto count = static_cast<double>(groups.size());
  for (size_t k = 0; k < result.size(); ++k)
    for (double LayerTimes::*part : kMeasuredTimes) {
      double sum_s = 0;
      for (const StackBench::ByKind& group : groups) sum_s += group[k].times.*part;
      result[k].times.*part = sum_s / count;
    }
  return result;
}

// Of a GPU, or of this machine: libtorch's own allocator has no type for that.
bool is_out_of_memory(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return true;
  if (const auto failure = device_failure(error)) return failure->out_of_memory();
  return std::string_view(error.what()).find("can't allocate memory") != std::string_view::npos;
}

// What rank 0 thinks.
bool agreed(Communicator& all, bool wanted) {
  unsigned char opinion = wanted ? 1 : 0;
  all.broadcast(&opinion, 1, ElementType::u8, 0);
  return opinion == 1;
}

}  // namespace

CrowdBench::CrowdBench(JobSpec job, int ranks, const MeasuringOptions& collectives, bool gpus)
    : job_(std::move(job)), ranks_(ranks), gpus_(gpus), collective_options_(collectives) {}

CrowdBench::Series CrowdBench::measure(int tp, const std::vector<int>& microbatches,
                                       const MeasuringOptions& options, double most_s) {
  const bool real_groups = tp > 1 && tp <= ranks_;
  const int width = real_groups ? tp : 1;
  const int groups = ranks_ / width, ranks = groups * width;
  std::vector<std::vector<StackBench::ByKind>> measured(  // by microbatch and rank
      microbatches.size(), std::vector<StackBench::ByKind>(static_cast<size_t>(ranks)));
  std::atomic<bool> full = false;
  const auto begin = std::chrono::steady_clock::now();
  const auto measure_rank = [&](Communicator& all, CommFactory& factory) {
    at::set_num_threads(1);  // one rank has one core to itself; a property of the thread
    const int group = all.rank() / width;
    const std::unique_ptr<Gpu> gpu = gpus_ ? open_gpu({.rank = all.rank(), .ranks = ranks}) : nullptr;
    Device& device = gpu ? gpu->device() : host_device();
    const ComputeOn computes(device);
    const std::unique_ptr<CommFactory> plane = gpu ? gpu->plane(factory, CommOptions()) : nullptr;
    std::unique_ptr<Communicator> own;
    if (real_groups) {
      std::vector<int> members(static_cast<size_t>(width));
      std::iota(members.begin(), members.end(), group * width);
      own = (plane ? *plane : factory).create(fmt::format("group/{}", group), members);
    }
    StackBench bench(job_, tp, {.all = &all, .group = own.get(), .device = &device});
    for (size_t i = 0; i < microbatches.size(); ++i) {
      if (i > 0 && !agreed(all, seconds_since(begin) < most_s)) break;
      measured[i][static_cast<size_t>(all.rank())] = bench.measure(microbatches[i], options);
    }
  };
  try {
    run_ranks(ranks, [&](Communicator& all, CommFactory& factory) {
      try {
        measure_rank(all, factory);
      } catch (const std::exception& error) {
        if (is_out_of_memory(error)) full = true;
        throw;
      }
    });
  } catch (const std::exception&) {  // without the rank that has failed the others cannot go on
    if (!full) throw;
  }

  Series series;
  series.out_of_memory = full;
  for (const std::vector<StackBench::ByKind>& members : measured) {
    if (std::ranges::any_of(members, &StackBench::ByKind::empty)) break;
    std::vector<StackBench::ByKind> by_group;
    for (int group = 0; group < groups; ++group)
      by_group.push_back(slowest(members.data() + group * width, width));
    StackBench::ByKind kinds = mean(by_group);
    for (LayerMeasurement& m : kinds) {
      m.times.forward_s += collectives_s(tp, m.forward_bytes);
      m.times.backward_s += collectives_s(tp, m.backward_bytes);
    }
    series.cells.push_back(std::move(kinds));
  }
  return series;
}

double CrowdBench::collectives_s(int tp, const std::vector<int64_t>& sizes_bytes) {
  std::vector<int64_t> unknown;
  for (const int64_t bytes : std::set<int64_t>(sizes_bytes.begin(), sizes_bytes.end()))
    if (!collective_s_.contains({tp, bytes})) unknown.push_back(bytes);
  if (!unknown.empty())
    for (const auto& [bytes, time_s] : measure_all_reduce(tp, unknown, collective_options_))
      collective_s_[{tp, bytes}] = time_s;
  double total_s = 0;
  for (const int64_t bytes : sizes_bytes) total_s += collective_s_.at({tp, bytes});
  return total_s;
}

StackBench::ByKind typical(const std::vector<StackBench::ByKind>& measurements) {
  StackBench::ByKind result = measurements.at(0);
  const auto count = static_cast<double>(measurements.size());
  for (size_t k = 0; k < result.size(); ++k) {
    for (double LayerTimes::*part : kMeasuredTimes) {
      Samples samples;
      for (const StackBench::ByKind& m : measurements) samples.add(m[k].times.*part);
      result[k].times.*part = samples.usual_mean();
    }
    result[k].times.weight_s = std::min(result[k].times.weight_s, result[k].times.backward_s);
    double sum_s = 0, square_sum = 0, within = 0;
    result[k].samples = result[k].outliers = 0;
    for (const StackBench::ByKind& m : measurements) {
      sum_s += busy_s(m[k]);
      square_sum += busy_s(m[k]) * busy_s(m[k]);
      within += m[k].relative_error * m[k].relative_error;
      result[k].samples += m[k].samples;
      result[k].outliers += m[k].outliers;
    }
    const double mean_s = sum_s / count;
    const double variance = count > 1 ? std::max(0.0, square_sum - count * mean_s * mean_s) / (count - 1) : 0;
    const double between =
        mean_s > 0 ? student_95(measurements.size()) * std::sqrt(variance / count) / mean_s : 0;
    result[k].relative_error = std::min(std::max(std::sqrt(within) / count, between), 10.0);
  }
  return result;
}

}  // namespace sailor
