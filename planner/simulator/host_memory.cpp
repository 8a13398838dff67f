#include "planner/simulator/host_memory.h"

#include <algorithm>

namespace sailor {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;
constexpr int64_t kBaseOnProcessors = kGiB, kBaseWithGpu = 4 * kGiB;

int copies_of_state(const JobSpec& job) {
  int copies = job.changes_in_place() ? 1 : 0;
  if (!job.checkpoint.directory.empty())
    copies += job.checkpoint.memory_copies == MemoryCopies::neighbour ? 2 : 1;
  return copies;
}

}  // namespace

HostMemory host_memory(const JobSpec& job, const MemoryBreakdown& memory, int64_t capacity_bytes,
                       bool on_processors) {
  const int64_t base = on_processors ? kBaseOnProcessors : kBaseWithGpu;
  const int64_t state = memory.weights_bytes - memory.frozen_bytes + memory.optimizer_bytes +
                        memory.master_bytes + memory.offloaded_bytes - memory.offloaded_inputs_bytes;
  const int64_t total = memory.total();
  const int64_t varying = copies_of_state(job) * state + memory.offloaded_bytes + (on_processors ? total : 0);
  HostMemory host{base + varying, base + varying};
  if (job.changes_in_place() && total > 0 && capacity_bytes > total) {
    const double growth = static_cast<double>(capacity_bytes) / static_cast<double>(total);
    host.most_bytes = base + static_cast<int64_t>(growth * static_cast<double>(varying));
  }
  return host;
}

}  // namespace sailor
