// Collectives built from messages, for planes in host memory. A plane derives from it and implements post().
//
// Large all-reduces are a direct reduce-scatter and an all-gather of finished parts; small ones exchange
// everything (few ranks) or go through rank 0 (many), because only latency matters. The choice depends only
// on sizes, so all members make the same one, and reductions are always in rank order.
#pragma once

#include "trainer/comm/communicator.h"

namespace sailor {

class MeshCommunicator : public Communicator {
 public:
  void all_reduce(void* data, std::size_t count, ElementType type, ReduceOp op, Stream stream) override;
  void reduce_scatter(const void* in, void* out, std::size_t count, ElementType type, ReduceOp op,
                      Stream stream) override;
  void all_gather(const void* in, void* out, std::size_t count, ElementType type, Stream stream) override;
  void reduce_own_block(void* data, std::size_t count, ElementType type, ReduceOp op, Stream stream) override;
  void gather_blocks(void* data, std::size_t count, ElementType type, Stream stream) override;
  void broadcast(void* data, std::size_t count, ElementType type, int root, Stream stream) override;
  std::unique_ptr<Work> exchange(std::span<const Transfer> transfers, Stream stream) override;

 protected:
  using Communicator::Communicator;

  // Starts all transfers; `operation` names them in errors. Transfers without elements complete at once.
  // `overlapped`: the caller does something else before it waits.
  virtual std::unique_ptr<Work> post(std::span<const Transfer> transfers, const char* operation,
                                     bool overlapped = false) = 0;

 private:
  void all_reduce_direct(char* data, std::size_t count, ElementType type, ReduceOp op);
  void all_reduce_via_first(char* data, std::size_t count, ElementType type, ReduceOp op);
  void reduce_blocks(char* data, std::size_t count, ElementType type, ReduceOp op, bool then_gather,
                     const char* operation);
};

}  // namespace sailor
