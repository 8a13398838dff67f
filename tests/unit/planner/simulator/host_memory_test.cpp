#include "planner/simulator/host_memory.h"

#include <gtest/gtest.h>

namespace sailor {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

StagePrediction stage() {
  StagePrediction stage;
  stage.memory.weights_bytes = 1 * kGiB;
  stage.memory.optimizer_bytes = 2 * kGiB;
  stage.memory.master_bytes = 3 * kGiB;
  stage.memory.activations_bytes = 4 * kGiB;
  stage.capacity_bytes = 40 * kGiB;
  return stage;
}

TEST(HostMemory, ARankWithAGpuNeedsItsLibrariesAndCopiesOfItsState) {
  JobSpec job;
  EXPECT_EQ(host_memory(job, stage(), false).least_bytes, 4 * kGiB);
  job.checkpoint.directory = "/c";
  EXPECT_EQ(host_memory(job, stage(), false).least_bytes, (4 + 6) * kGiB);
  job.checkpoint.memory_copies = MemoryCopies::neighbour;
  EXPECT_EQ(host_memory(job, stage(), false).least_bytes, (4 + 2 * 6) * kGiB);
  EXPECT_EQ(host_memory(job, stage(), false).most_bytes, (4 + 2 * 6) * kGiB);
}

TEST(HostMemory, OnProcessorsTheTensorsAreThereToo) {
  EXPECT_EQ(host_memory({}, stage(), true).least_bytes, (1 + 10) * kGiB);
}

TEST(HostMemory, ALaterPlanOfAnElasticJobFillsTheGpuAtMost) {
  JobSpec job;
  job.elastic.enabled = true;
  EXPECT_EQ(host_memory(job, stage(), false).least_bytes, (4 + 6) * kGiB);
  EXPECT_EQ(host_memory(job, stage(), false).most_bytes, (4 + 4 * 6) * kGiB) << "a quarter of it is used";
  EXPECT_EQ(host_memory(job, stage(), true).most_bytes, (1 + 4 * (6 + 10)) * kGiB);
}

}  // namespace
}  // namespace sailor
