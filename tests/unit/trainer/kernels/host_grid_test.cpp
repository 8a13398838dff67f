#include "trainer/kernels/host_grid.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

namespace sailor::kernels {
namespace {

TEST(HostGrid, ThreadsExchangeValuesThroughWarpsAndSharedMemory) {
  std::vector<int> sums;
  run_on_processor(3, 96, 96 * sizeof(int), [&](HostGrid& grid) {
    int* const shared = shared_array<int>(grid);
    shared[grid.thread()] = grid.thread();
    grid.barrier();
    const int mirrored = shared[95 - grid.thread()];
    EXPECT_EQ(mirrored, 95 - grid.thread());
    EXPECT_EQ(grid.shuffle_xor(grid.thread(), 5), grid.thread() ^ 5);
    const int sum = block_sum(grid, mirrored + grid.block());
    EXPECT_EQ(block_max(grid, mirrored), 95);
    if (grid.thread() == 0) sums.push_back(sum);
  });
  EXPECT_EQ(sums, (std::vector<int>{4560, 4656, 4752}));
}

TEST(HostGrid, ABarrierThatThreadsMissIsAnError) {
  EXPECT_THROW(run_on_processor(1, 64, 0,
                                [](HostGrid& grid) {
                                  if (grid.thread() != 40) grid.barrier();
                                }),
               std::logic_error);
  EXPECT_THROW(run_on_processor(1, 64, 0,
                                [](HostGrid& grid) {
                                  if (grid.thread() < 8) grid.shuffle_xor(1, 1);
                                }),
               std::logic_error);
  EXPECT_THROW(run_on_processor(1, 33, 0, [](HostGrid&) {}), std::logic_error);
}

TEST(HostGrid, SharedMemoryStartsAsNoNumber) {
  run_on_processor(2, 32, 64, [&](HostGrid& grid) {
    float* const shared = shared_array<float>(grid);
    EXPECT_NE(shared[0], shared[0]);
    grid.barrier();
    if (grid.thread() == 0) shared[0] = 1;
  });
}

TEST(HostGrid, WhatAKernelThrowsArrives) {
  EXPECT_THROW(run_on_processor(1, 32, 0, [](HostGrid&) { throw std::runtime_error("of the kernel"); }),
               std::runtime_error);
}

}  // namespace
}  // namespace sailor::kernels
