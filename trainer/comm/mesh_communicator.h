// Collectives built from messages, for planes in host memory. A plane derives from it and delivers post().
//
// Large all-reduces are a direct reduce-scatter and an all-gather of what is ready; small ones exchange
// everything (few ranks) or go through rank 0 (many), because latency is all they cost. The choice depends on
// sizes alone, so that all members make the same one, and the order of summation is by rank in every case.
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

  // Starts all transfers; `operation` names them in errors. Transfers of no elements are done at once.
  // `overlapped` says that the caller will do something else before it waits.
  virtual std::unique_ptr<Work> post(std::span<const Transfer> transfers, const char* operation,
                                     bool overlapped = false) = 0;

 private:
  void all_reduce_direct(char* data, std::size_t count, ElementType type, ReduceOp op);
  void all_reduce_via_first(char* data, std::size_t count, ElementType type, ReduceOp op);
  void reduce_blocks(char* data, std::size_t count, ElementType type, ReduceOp op, bool then_gather,
                     const char* operation);
};

}  // namespace sailor
