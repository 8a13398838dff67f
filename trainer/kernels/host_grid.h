// Runs device kernels on a processor, for tests: every block, every thread of it.
//
// The threads of a block are fibers of the calling thread. They run in the order of their indices, each until
// it waits at a barrier or shuffle, or ends; when none can go on, those that wait together are released.
// So a run is deterministic, a debugger sees one thread, and a barrier that not all threads reach is
// an error (std::logic_error), where a device would hang. Shared memory starts with bytes that no kernel can
// use by mistake: NaN in every floating-point type. Not thread-safe: one run at a time per thread.
#pragma once

#include <cstddef>
#include <cstring>
#include <functional>

#include "trainer/kernels/grid.h"

namespace sailor::kernels {

class FiberBlock;

class HostGrid {
 public:
  HostGrid(FiberBlock& fibers, int block, int blocks, int thread, int threads)
      : fibers_(fibers), block_(block), blocks_(blocks), thread_(thread), threads_(threads) {}
  int block() const { return block_; }
  int blocks() const { return blocks_; }
  int thread() const { return thread_; }
  int threads() const { return threads_; }
  void barrier();
  std::byte* shared();
  template <class R>
  R shuffle_xor(R value, int lanes) {
    static_assert(sizeof(R) <= sizeof(double));
    std::memcpy(slot(thread_), &value, sizeof value);
    wait_for_warp();
    std::memcpy(&value, slot(thread_ ^ lanes), sizeof value);
    wait_for_warp();
    return value;
  }

 private:
  void* slot(int thread);
  void wait_for_warp();

  FiberBlock& fibers_;
  int block_, blocks_, thread_, threads_;
};

// Requires: `threads` is a multiple of kWarp, at most kMaxThreads.
void run_on_processor(int blocks, int threads, std::size_t shared_bytes,
                      const std::function<void(HostGrid&)>& kernel);

}  // namespace sailor::kernels
