// A communicator without peers: collectives copy within this process's memory what they would send, and
// record the number of bytes. A layer measured with it costs only its own computation; the real collective is
// measured separately and added (link_bench.h). Messages to single ranks throw, because layers do not send
// any.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/comm/communicator.h"

namespace sailor {

class CopyingCommunicator : public Communicator {
 public:
  // Acts as rank 0 of `size`. Copies nothing in GPU memory.
  explicit CopyingCommunicator(int size, bool copies = true);

  void all_reduce(void* data, std::size_t count, ElementType type, ReduceOp op, Stream stream) override;
  void reduce_scatter(const void* in, void* out, std::size_t count, ElementType type, ReduceOp op,
                      Stream stream) override;
  void all_gather(const void* in, void* out, std::size_t count, ElementType type, Stream stream) override;
  void reduce_own_block(void* data, std::size_t count, ElementType type, ReduceOp op, Stream stream) override;
  void gather_blocks(void* data, std::size_t count, ElementType type, Stream stream) override;
  void broadcast(void* data, std::size_t count, ElementType type, int root, Stream stream) override;
  std::unique_ptr<Work> exchange(std::span<const Transfer> transfers, Stream stream) override;
  void abort() noexcept override {}

  // Bytes of each collective since the last call of this function, in order.
  std::vector<int64_t> take_bytes();

 private:
  void note(std::size_t bytes) { bytes_.push_back(static_cast<int64_t>(bytes)); }

  const bool copies_;
  std::vector<int64_t> bytes_;
  std::vector<char> scratch_;
};

}  // namespace sailor
