// The layer over which device kernels are written once: a kernel is a function template of a Grid, the view
// that one thread has of the launch, and is compiled
// - by nvcc with CudaGrid, for devices (device_kernels.cu), and
// - by any compiler with HostGrid (host_grid.h), which runs every block on a processor, exactly, for tests.
//
// A Grid has block(), blocks(), thread(), threads(); barrier(), which all threads of a block pass together;
// shuffle_xor(value, lanes), the value of the thread of the same warp whose index differs in the bits
// `lanes`, called by all threads of the warp together; shared(), the block's memory. Blocks are
// one-dimensional and have a multiple of kWarp threads. The first kReserved bytes of the shared memory are
// those of block_sum() and its like.
#pragma once

#include <cstddef>
#include <cstdint>

#include "trainer/kernels/element.h"

#if defined(__CUDACC__)
#define SAILOR_BLOCKS __device__ inline
#define SAILOR_UNROLL _Pragma("unroll")
#else
#define SAILOR_BLOCKS inline
#define SAILOR_UNROLL
#endif

namespace sailor::kernels {

inline constexpr int kWarp = 32, kMaxThreads = 1024;
inline constexpr std::size_t kReserved = 2 * kMaxThreads / kWarp * sizeof(double);

// The number of threads that have at most `of_thread` of `items` each, or `most`.
inline int threads_for(int64_t items, int of_thread, int most = kMaxThreads) {
  const int64_t wanted = (items + of_thread * kWarp - 1) / (of_thread * kWarp) * kWarp;
  return static_cast<int>(wanted < most ? (wanted < kWarp ? kWarp : wanted) : most);
}

template <class Grid, class R>
SAILOR_BLOCKS R* reserved(Grid& grid) {
  return reinterpret_cast<R*>(grid.shared());
}
template <class R, class Grid>
SAILOR_BLOCKS R* shared_array(Grid& grid) {
  return reinterpret_cast<R*>(grid.shared() + kReserved);
}

// combine(a, b) over the values of all threads, in an order that only depends on their number. Every thread
// gets the result.
template <class Grid, class R, class Combine>
SAILOR_BLOCKS R block_reduce(Grid& grid, R value, const Combine& combine) {
  for (int lanes = kWarp / 2; lanes > 0; lanes /= 2) value = combine(value, grid.shuffle_xor(value, lanes));
  if (grid.threads() == kWarp) return value;
  R* const of_warps = reserved<Grid, R>(grid);
  if (grid.thread() % kWarp == 0) of_warps[grid.thread() / kWarp] = value;
  grid.barrier();
  value = of_warps[0];
  for (int warp = 1; warp < grid.threads() / kWarp; ++warp) value = combine(value, of_warps[warp]);
  grid.barrier();  // the next reduction uses the same memory
  return value;
}
template <class Grid, class R>
SAILOR_BLOCKS R block_sum(Grid& grid, R value) {
  return block_reduce(grid, value, [](R a, R b) { return a + b; });
}
template <class Grid, class R>
SAILOR_BLOCKS R block_max(Grid& grid, R value) {
  return block_reduce(grid, value, [](R a, R b) { return b > a ? b : a; });
}

template <class R>
struct TwoSums {
  R first, second;
};
// Two sums at once.
template <class Grid, class R>
SAILOR_BLOCKS TwoSums<R> block_sums(Grid& grid, TwoSums<R> sums) {
  for (int lanes = kWarp / 2; lanes > 0; lanes /= 2) {
    sums.first += grid.shuffle_xor(sums.first, lanes);
    sums.second += grid.shuffle_xor(sums.second, lanes);
  }
  if (grid.threads() == kWarp) return sums;
  TwoSums<R>* const of_warps = reserved<Grid, TwoSums<R>>(grid);
  if (grid.thread() % kWarp == 0) of_warps[grid.thread() / kWarp] = sums;
  grid.barrier();
  sums = of_warps[0];
  for (int warp = 1; warp < grid.threads() / kWarp; ++warp) {
    sums.first += of_warps[warp].first;
    sums.second += of_warps[warp].second;
  }
  grid.barrier();
  return sums;
}

}  // namespace sailor::kernels
