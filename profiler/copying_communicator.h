// A communicator with no peers behind it: collectives copy within this process's memory what they would send,
// and note how many bytes that was. A layer measured with it costs its own computation; the real collective
// is measured apart and added (link_bench.h). Messages to single ranks throw: no layer sends any.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/comm/communicator.h"

namespace sailor {

class CopyingCommunicator : public Communicator {
 public:
  // Acts as rank 0 of `size`. On a GPU's memory it copies nothing.
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
