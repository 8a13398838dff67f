#include "trainer/comm/mesh_communicator.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "trainer/comm/reduce.h"

namespace sailor {
namespace {

constexpr std::size_t kSmallBytes = 16384;  // up to here an all-reduce is bound by latency
constexpr int kFewRanks = 4;
// Of one rank's block: large enough to outweigh what a message costs, small enough to be still in the
// processor's cache when it is summed.
constexpr std::size_t kPieceBytes = 512 << 10;

using Buffer = std::unique_ptr<char[]>;
Buffer make_buffer(std::size_t bytes) {
  return std::make_unique_for_overwrite<char[]>(std::max<std::size_t>(bytes, 1));
}

Transfer sending(const void* data, std::size_t count, ElementType type, int peer) {
  return {Transfer::Kind::send, const_cast<void*>(data), count, type, peer};
}
Transfer receiving(void* data, std::size_t count, ElementType type, int peer) {
  return {Transfer::Kind::recv, data, count, type, peer};
}

}  // namespace

std::unique_ptr<Work> MeshCommunicator::exchange(std::span<const Transfer> transfers, Stream) {
  const bool any_send = std::any_of(transfers.begin(), transfers.end(),
                                    [](const Transfer& t) { return t.kind == Transfer::Kind::send; });
  const bool any_recv = std::any_of(transfers.begin(), transfers.end(),
                                    [](const Transfer& t) { return t.kind == Transfer::Kind::recv; });
  return post(transfers, any_send && any_recv ? "exchange" : any_send ? "send" : "recv", true);
}

void MeshCommunicator::all_reduce(void* data, std::size_t count, ElementType type, ReduceOp op, Stream) {
  if (size() == 1 || count == 0) return;
  auto* bytes = static_cast<char*>(data);
  if (count * element_size(type) > kSmallBytes)
    return reduce_blocks(bytes, count, type, op, /*then_gather=*/true, "all_reduce");
  if (size() <= kFewRanks) return all_reduce_direct(bytes, count, type, op);
  all_reduce_via_first(bytes, count, type, op);
}

void MeshCommunicator::all_reduce_direct(char* data, std::size_t count, ElementType type, ReduceOp op) {
  const std::size_t bytes = count * element_size(type);
  const Buffer others = make_buffer(bytes * size());
  std::vector<Transfer> transfers;
  std::vector<const void*> inputs;
  for (int peer = 0; peer < size(); ++peer) {
    char* slot = peer == rank() ? data : others.get() + bytes * peer;
    inputs.push_back(slot);
    if (peer == rank()) continue;
    transfers.push_back(receiving(slot, count, type, peer));
    transfers.push_back(sending(data, count, type, peer));
  }
  post(transfers, "all_reduce")->wait();
  reduce_in_order(op, type, inputs, data, count);
}

void MeshCommunicator::all_reduce_via_first(char* data, std::size_t count, ElementType type, ReduceOp op) {
  if (rank() == 0) {
    const std::size_t bytes = count * element_size(type);
    const Buffer others = make_buffer(bytes * size());
    std::vector<Transfer> transfers;
    std::vector<const void*> inputs{data};
    for (int peer = 1; peer < size(); ++peer) {
      inputs.push_back(others.get() + bytes * peer);
      transfers.push_back(receiving(others.get() + bytes * peer, count, type, peer));
    }
    post(transfers, "all_reduce")->wait();
    reduce_in_order(op, type, inputs, data, count);
    for (Transfer& transfer : transfers) transfer = sending(data, count, type, transfer.peer);
    post(transfers, "all_reduce")->wait();
  } else {
    const Transfer there = sending(data, count, type, 0);
    post({&there, 1}, "all_reduce")->wait();
    const Transfer back = receiving(data, count, type, 0);
    post({&back, 1}, "all_reduce")->wait();
  }
}

// Piece by piece, so that one is reduced, and on its way back, while the next arrives. All that is to be
// reduced is under way from the start: on a link with a long way it costs one latency, not one per piece.
void MeshCommunicator::reduce_blocks(char* data, std::size_t count, ElementType type, ReduceOp op,
                                     bool then_gather, const char* operation) {
  const std::size_t element = element_size(type);
  const std::size_t largest = block_of(count, size(), 0).count;
  const std::size_t step = kPieceBytes / element;
  const auto others_slots = static_cast<std::size_t>(size() - 1);
  const Buffer others = make_buffer(largest * element * others_slots);
  // Elements of `peer`'s block that belong to the piece from `first` on.
  const auto piece_of = [&](int peer, std::size_t first) {
    const BlockRange block = block_of(count, size(), peer);
    const std::size_t skipped = std::min(first, block.count);
    return BlockRange{block.first + skipped, std::min(step, block.count - skipped)};
  };
  std::vector<Transfer> transfers;
  std::vector<std::unique_ptr<Work>> arriving, gathering;
  for (std::size_t first = 0; first < largest; first += step) {
    const BlockRange mine = piece_of(rank(), first);
    char* slot = others.get() + first * element * others_slots;
    transfers.clear();
    for (int peer = 0; peer < size(); ++peer) {
      if (peer == rank()) continue;
      const BlockRange theirs = piece_of(peer, first);
      transfers.push_back(
          receiving(std::exchange(slot, slot + mine.count * element), mine.count, type, peer));
      transfers.push_back(sending(data + theirs.first * element, theirs.count, type, peer));
    }
    arriving.push_back(post(transfers, operation));
  }
  std::vector<const void*> inputs;
  for (std::size_t first = 0; first < largest; first += step) {
    const BlockRange mine = piece_of(rank(), first);
    const char* slot = others.get() + first * element * others_slots;
    inputs.clear();
    for (int peer = 0; peer < size(); ++peer)
      inputs.push_back(peer == rank() ? data + mine.first * element
                                      : std::exchange(slot, slot + mine.count * element));
    arriving[first / step]->wait();
    reduce_in_order(op, type, inputs, data + mine.first * element, mine.count);
    if (!then_gather) continue;
    transfers.clear();
    for (int peer = 0; peer < size(); ++peer) {
      if (peer == rank()) continue;
      const BlockRange theirs = piece_of(peer, first);
      transfers.push_back(receiving(data + theirs.first * element, theirs.count, type, peer));
      transfers.push_back(sending(data + mine.first * element, mine.count, type, peer));
    }
    gathering.push_back(post(transfers, operation));
  }
  for (const auto& work : gathering) work->wait();
}

void MeshCommunicator::reduce_own_block(void* data, std::size_t count, ElementType type, ReduceOp op,
                                        Stream) {
  if (size() == 1 || count == 0) return;
  reduce_blocks(static_cast<char*>(data), count, type, op, /*then_gather=*/false, "reduce_own_block");
}

void MeshCommunicator::gather_blocks(void* data, std::size_t count, ElementType type, Stream) {
  if (size() == 1 || count == 0) return;
  auto* bytes = static_cast<char*>(data);
  const std::size_t element = element_size(type);
  const BlockRange mine = block_of(count, size(), rank());
  std::vector<Transfer> transfers;
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank()) continue;
    const BlockRange block = block_of(count, size(), peer);
    transfers.push_back(receiving(bytes + block.first * element, block.count, type, peer));
    transfers.push_back(sending(bytes + mine.first * element, mine.count, type, peer));
  }
  post(transfers, "gather_blocks")->wait();
}

void MeshCommunicator::reduce_scatter(const void* in, void* out, std::size_t count, ElementType type,
                                      ReduceOp op, Stream) {
  const std::size_t bytes = count * element_size(type);
  const auto* source = static_cast<const char*>(in);
  const Buffer others = make_buffer(bytes * size());
  std::vector<Transfer> transfers;
  std::vector<const void*> inputs;
  for (int peer = 0; peer < size(); ++peer) {
    char* slot = others.get() + bytes * peer;
    inputs.push_back(peer == rank() ? source + bytes * peer : slot);
    if (peer == rank()) continue;
    transfers.push_back(receiving(slot, count, type, peer));
    transfers.push_back(sending(source + bytes * peer, count, type, peer));
  }
  post(transfers, "reduce_scatter")->wait();
  reduce_in_order(op, type, inputs, out, count);
}

void MeshCommunicator::all_gather(const void* in, void* out, std::size_t count, ElementType type, Stream) {
  const std::size_t bytes = count * element_size(type);
  auto* blocks = static_cast<char*>(out);
  char* mine = blocks + bytes * rank();
  if (mine != in && bytes > 0) std::memcpy(mine, in, bytes);
  std::vector<Transfer> transfers;
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank()) continue;
    transfers.push_back(receiving(blocks + bytes * peer, count, type, peer));
    transfers.push_back(sending(mine, count, type, peer));
  }
  post(transfers, "all_gather")->wait();
}

void MeshCommunicator::broadcast(void* data, std::size_t count, ElementType type, int root, Stream) {
  std::vector<Transfer> transfers;
  if (rank() == root) {
    for (int peer = 0; peer < size(); ++peer) {
      if (peer != root) transfers.push_back(sending(data, count, type, peer));
    }
  } else {
    transfers.push_back(receiving(data, count, type, root));
  }
  post(transfers, "broadcast")->wait();
}

}  // namespace sailor
