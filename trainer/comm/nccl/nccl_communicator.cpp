#include "trainer/comm/nccl/nccl_communicator.h"

#include <algorithm>
#include <cstdio>
#include <stdexcept>
#include <utility>

namespace sailor {
namespace {

ncclDataType_t nccl_type(ElementType type) {
  switch (type) {
    case ElementType::f32:
      return ncclFloat32;
    case ElementType::f64:
      return ncclFloat64;
    case ElementType::bf16:
      return ncclBfloat16;
    case ElementType::f16:
      return ncclFloat16;
    case ElementType::i64:
      return ncclInt64;
    case ElementType::u8:
      return ncclUint8;
  }
  throw std::logic_error("nccl: no such element type");
}

ncclRedOp_t nccl_op(ReduceOp op) {
  return op == ReduceOp::sum ? ncclSum : ncclMax;
}

Doing collective(const char* operation, std::size_t count, ElementType type, ReduceOp op = ReduceOp::sum,
                 int root = -1) {
  Doing doing{.count = count, .type = type, .op = op, .root = root, .to_all = true};
  std::snprintf(doing.operation, sizeof doing.operation, "%s", operation);
  return doing;
}

// Of messages: whether any goes this way.
bool any(std::span<const Transfer> transfers, Transfer::Kind kind) {
  return std::any_of(transfers.begin(), transfers.end(), [&](const Transfer& t) { return t.kind == kind; });
}

void* element(void* data, std::size_t index, ElementType type) {
  return static_cast<char*>(data) + index * element_size(type);
}

ncclResult_t checked(const NcclLibrary& nccl, const char* call, ncclComm_t communicator,
                     ncclResult_t result) {
  check(nccl, result, call, communicator);
  return result;
}

// Makes all calls of `calls` in one group of NCCL.
template <class Calls>
ncclResult_t group(const NcclLibrary& nccl, ncclComm_t communicator, const Calls& calls) {
  checked(nccl, "ncclGroupStart", communicator, nccl.group_start());
  try {
    calls();
  } catch (...) {
    static_cast<void>(nccl.group_end());  // the thread's next group must not be inside this one
    throw;
  }
  return checked(nccl, "ncclGroupEnd", communicator, nccl.group_end());
}

class NcclWork : public Work {
 public:
  NcclWork(std::shared_ptr<NcclMember> member, NcclOperationPtr operation)
      : member_(std::move(member)), operation_(std::move(operation)) {}
  ~NcclWork() override {
    if (operation_) member_->abandon(operation_);
  }
  void wait() override {
    if (const NcclOperationPtr operation = std::exchange(operation_, nullptr)) member_->wait(operation);
  }
  bool done() override { return !operation_ || member_->done(operation_); }
  void wait_on(Stream stream) override {
    if (!stream) return wait();
    if (const NcclOperationPtr operation = std::exchange(operation_, nullptr))
      member_->wait_on(operation, static_cast<cudaStream_t>(stream));
  }

 private:
  std::shared_ptr<NcclMember> member_;
  NcclOperationPtr operation_;  // null when nothing is left to wait for
};

}  // namespace

NcclCommunicator::NcclCommunicator(NcclMember::Setup setup, NcclWatch& watch)
    : Communicator(setup.name, setup.rank, setup.ranks),
      nccl_(setup.libraries.nccl),
      watch_(watch),
      member_(std::make_shared<NcclMember>(std::move(setup))) {
  for (int peer = 0; peer < size(); ++peer) {
    if (peer != rank()) others_.push_back(peer);
  }
  watch_.add(member_);
}

NcclCommunicator::~NcclCommunicator() {
  member_->leave();
  watch_.remove(member_);
}

void NcclCommunicator::run(Doing doing, Stream stream, NcclMember::Call call) {
  const auto operation = member_->begin(doing, others_, stream == nullptr);
  member_->launch(operation, {std::move(call), {}}, static_cast<cudaStream_t>(stream), nullptr);
  if (!stream) member_->wait(operation);
}

void NcclCommunicator::all_reduce(void* data, std::size_t count, ElementType type, ReduceOp op,
                                  Stream stream) {
  if (size() == 1 || count == 0) return;
  run(collective("all_reduce", count, type, op), stream,
      [=, &nccl = nccl_](ncclComm_t comm, cudaStream_t on) {
        return checked(nccl, "ncclAllReduce", comm,
                       nccl.all_reduce(data, data, count, nccl_type(type), nccl_op(op), comm, on));
      });
}

void NcclCommunicator::reduce_scatter(const void* in, void* out, std::size_t count, ElementType type,
                                      ReduceOp op, Stream stream) {
  if (count == 0) return;
  run(collective("reduce_scatter", count, type, op), stream,
      [=, &nccl = nccl_](ncclComm_t comm, cudaStream_t on) {
        return checked(nccl, "ncclReduceScatter", comm,
                       nccl.reduce_scatter(in, out, count, nccl_type(type), nccl_op(op), comm, on));
      });
}

void NcclCommunicator::all_gather(const void* in, void* out, std::size_t count, ElementType type,
                                  Stream stream) {
  if (count == 0) return;
  run(collective("all_gather", count, type), stream, [=, &nccl = nccl_](ncclComm_t comm, cudaStream_t on) {
    return checked(nccl, "ncclAllGather", comm, nccl.all_gather(in, out, count, nccl_type(type), comm, on));
  });
}

void NcclCommunicator::reduce_own_block(void* data, std::size_t count, ElementType type, ReduceOp op,
                                        Stream stream) {
  if (size() == 1 || count == 0) return;
  const Doing doing = collective("reduce_own_block", count, type, op);
  if (count % static_cast<std::size_t>(size()) == 0) {
    const BlockRange own = block_of(count, size(), rank());
    return run(doing, stream, [=, &nccl = nccl_](ncclComm_t comm, cudaStream_t on) {
      return checked(nccl, "ncclReduceScatter", comm,
                     nccl.reduce_scatter(data, element(data, own.first, type), own.count, nccl_type(type),
                                         nccl_op(op), comm, on));
    });
  }
  run(doing, stream, [=, size = size(), &nccl = nccl_](ncclComm_t comm, cudaStream_t on) {
    return group(nccl, comm, [&] {
      for (int owner = 0; owner < size; ++owner) {
        const BlockRange block = block_of(count, size, owner);
        void* const first = element(data, block.first, type);
        if (block.count > 0)
          checked(nccl, "ncclReduce", comm,
                  nccl.reduce(first, first, block.count, nccl_type(type), nccl_op(op), owner, comm, on));
      }
    });
  });
}

void NcclCommunicator::gather_blocks(void* data, std::size_t count, ElementType type, Stream stream) {
  if (size() == 1 || count == 0) return;
  const Doing doing = collective("gather_blocks", count, type);
  if (count % static_cast<std::size_t>(size()) == 0) {
    const BlockRange own = block_of(count, size(), rank());
    return run(doing, stream, [=, &nccl = nccl_](ncclComm_t comm, cudaStream_t on) {
      return checked(
          nccl, "ncclAllGather", comm,
          nccl.all_gather(element(data, own.first, type), data, own.count, nccl_type(type), comm, on));
    });
  }
  run(doing, stream, [=, size = size(), &nccl = nccl_](ncclComm_t comm, cudaStream_t on) {
    return group(nccl, comm, [&] {
      for (int owner = 0; owner < size; ++owner) {
        const BlockRange block = block_of(count, size, owner);
        void* const first = element(data, block.first, type);
        if (block.count > 0)
          checked(nccl, "ncclBroadcast", comm,
                  nccl.broadcast(first, first, block.count, nccl_type(type), owner, comm, on));
      }
    });
  });
}

void NcclCommunicator::broadcast(void* data, std::size_t count, ElementType type, int root, Stream stream) {
  if (size() == 1 || count == 0) return;
  run(collective("broadcast", count, type, ReduceOp::sum, root), stream,
      [=, &nccl = nccl_](ncclComm_t comm, cudaStream_t on) {
        return checked(nccl, "ncclBroadcast", comm,
                       nccl.broadcast(data, data, count, nccl_type(type), root, comm, on));
      });
}

void NcclCommunicator::barrier() {
  if (size() == 1) return;
  run(collective("barrier", 1, ElementType::u8, ReduceOp::max), nullptr,
      [token = member_->token(), &nccl = nccl_](ncclComm_t comm, cudaStream_t on) {
        return checked(nccl, "ncclAllReduce", comm,
                       nccl.all_reduce(token, token, 1, ncclUint8, ncclMax, comm, on));
      });
}

std::unique_ptr<Work> NcclCommunicator::exchange(std::span<const Transfer> transfers, Stream stream) {
  if (!member_->takes_messages())
    throw std::logic_error("communicator " + name() + ": it was made for collectives only");
  const bool sends = any(transfers, Transfer::Kind::send), receives = any(transfers, Transfer::Kind::recv);
  Doing doing = collective(sends && receives ? "exchange" : sends ? "send" : "recv", 0, ElementType::u8);
  doing.to_all = false;
  std::vector<int> needed;
  for (const Transfer& transfer : transfers) {
    if (transfer.count == 0) continue;
    doing.count += transfer.count;
    doing.type = transfer.type;
    if (std::find(needed.begin(), needed.end(), transfer.peer) == needed.end())
      needed.push_back(transfer.peer);
  }
  const auto operation = member_->begin(doing, needed, stream == nullptr);
  auto work = std::make_unique<NcclWork>(member_, operation);
  NcclMember::Calls calls;
  for (const NcclMember::Lane lane : {NcclMember::up, NcclMember::down}) {
    std::vector<Transfer> through;
    for (const Transfer& transfer : transfers) {
      const bool upwards =
          transfer.peer == rank() || (transfer.kind == Transfer::Kind::send) == (transfer.peer > rank());
      if (transfer.count > 0 && upwards == (lane == NcclMember::up)) through.push_back(transfer);
    }
    if (through.empty()) continue;
    calls[lane] = [through = std::move(through), &nccl = nccl_](ncclComm_t comm, cudaStream_t on) {
      return group(nccl, comm, [&] {
        for (const Transfer& t : through) {
          if (t.kind == Transfer::Kind::send) {
            checked(nccl, "ncclSend", comm, nccl.send(t.data, t.count, nccl_type(t.type), t.peer, comm, on));
          } else {
            checked(nccl, "ncclRecv", comm, nccl.recv(t.data, t.count, nccl_type(t.type), t.peer, comm, on));
          }
        }
      });
    };
  }
  member_->launch(operation, std::move(calls), nullptr, static_cast<cudaStream_t>(stream));
  return work;
}

}  // namespace sailor
