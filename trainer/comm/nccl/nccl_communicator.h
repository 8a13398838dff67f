// Communicator's operations as calls of NCCL. See nccl_plane.h.
#pragma once

#include "trainer/comm/communicator.h"
#include "trainer/comm/nccl/nccl_watch.h"

namespace sailor {

class NcclCommunicator : public Communicator {
 public:
  // `watch` outlives it. Throws CudaError.
  NcclCommunicator(NcclMember::Setup setup, NcclWatch& watch);
  ~NcclCommunicator() override;

  // Returns when all members have joined. Throws CommError.
  void join(const NcclMember::LaneIds& ids, NcclMember::Clock::time_point began) {
    member_->join(ids, began);
  }

  void all_reduce(void* data, std::size_t count, ElementType type, ReduceOp op, Stream stream) override;
  void reduce_scatter(const void* in, void* out, std::size_t count, ElementType type, ReduceOp op,
                      Stream stream) override;
  void all_gather(const void* in, void* out, std::size_t count, ElementType type, Stream stream) override;
  // For blocks of different sizes: a reduction to each owner, or a broadcast from it, in one group. On a ring
  // that moves the same bytes, and copies nothing.
  void reduce_own_block(void* data, std::size_t count, ElementType type, ReduceOp op, Stream stream) override;
  void gather_blocks(void* data, std::size_t count, ElementType type, Stream stream) override;
  void broadcast(void* data, std::size_t count, ElementType type, int root, Stream stream) override;
  void barrier() override;
  std::unique_ptr<Work> exchange(std::span<const Transfer> transfers, Stream stream) override;
  void settle() override { member_->settle(); }
  void abort() noexcept override { member_->abort(); }

 private:
  void run(Doing doing, Stream stream, NcclMember::Call call);

  const NcclLibrary& nccl_;
  NcclWatch& watch_;
  std::vector<int> others_;  // all members except oneself
  const std::shared_ptr<NcclMember> member_;
};

}  // namespace sailor
