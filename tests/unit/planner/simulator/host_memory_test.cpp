#include "planner/simulator/host_memory.h"

#include <gtest/gtest.h>

namespace sailor {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

constexpr int64_t kCapacity = 40 * kGiB;

MemoryBreakdown memory() {
  MemoryBreakdown memory;
  memory.weights_bytes = 1 * kGiB;
  memory.optimizer_bytes = 2 * kGiB;
  memory.master_bytes = 3 * kGiB;
  memory.activations_bytes = 4 * kGiB;
  return memory;
}

TEST(HostMemory, ARankWithAGpuNeedsItsLibrariesAndCopiesOfItsState) {
  JobSpec job;
  EXPECT_EQ(host_memory(job, memory(), kCapacity, false).least_bytes, 4 * kGiB);
  job.checkpoint.directory = "/c";
  EXPECT_EQ(host_memory(job, memory(), kCapacity, false).least_bytes, (4 + 6) * kGiB);
  job.checkpoint.memory_copies = MemoryCopies::neighbour;
  EXPECT_EQ(host_memory(job, memory(), kCapacity, false).least_bytes, (4 + 2 * 6) * kGiB);
  EXPECT_EQ(host_memory(job, memory(), kCapacity, false).most_bytes, (4 + 2 * 6) * kGiB);
}

TEST(HostMemory, OnProcessorsTheTensorsAreThereToo) {
  EXPECT_EQ(host_memory({}, memory(), kCapacity, true).least_bytes, (1 + 10) * kGiB);
}

// They are in no checkpoint.
TEST(HostMemory, OffloadedInputsAreThereOnce) {
  MemoryBreakdown offloaded = memory();
  offloaded.offloaded_bytes = offloaded.offloaded_inputs_bytes = 3 * kGiB;
  JobSpec job;
  job.checkpoint.directory = "/checkpoints";
  EXPECT_EQ(host_memory(job, offloaded, kCapacity, false).least_bytes,
            host_memory(job, memory(), kCapacity, false).least_bytes + 3 * kGiB);
}

TEST(HostMemory, OffloadedStatesAreThereOnceMore) {
  MemoryBreakdown offloaded = memory();
  offloaded.offloaded_bytes = offloaded.optimizer_bytes + offloaded.master_bytes;
  offloaded.optimizer_bytes = offloaded.master_bytes = 0;
  JobSpec job;
  EXPECT_EQ(host_memory(job, offloaded, kCapacity, false).least_bytes, (4 + 5) * kGiB);
  job.checkpoint.directory = "/c";
  EXPECT_EQ(host_memory(job, offloaded, kCapacity, false).least_bytes, (4 + 5 + 6) * kGiB);
  EXPECT_EQ(host_memory({}, offloaded, kCapacity, true).least_bytes, (1 + 10) * kGiB);
}

TEST(HostMemory, ALaterPlanOfAnElasticJobFillsTheGpuAtMost) {
  JobSpec job;
  job.elastic.enabled = true;
  EXPECT_EQ(host_memory(job, memory(), kCapacity, false).least_bytes, (4 + 6) * kGiB);
  EXPECT_EQ(host_memory(job, memory(), kCapacity, false).most_bytes, (4 + 4 * 6) * kGiB)
      << "a quarter of it is used";
  EXPECT_EQ(host_memory(job, memory(), kCapacity, true).most_bytes, (1 + 4 * (6 + 10)) * kGiB);
}

}  // namespace
}  // namespace sailor
