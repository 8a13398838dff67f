#include "profiler/copying_communicator.h"

#include <cstring>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace sailor {
namespace {

std::vector<int> first_ranks(int size) {
  std::vector<int> ranks(static_cast<size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

}  // namespace

CopyingCommunicator::CopyingCommunicator(int size, bool copies)
    : Communicator("copying", 0, first_ranks(size)), copies_(copies) {}

void CopyingCommunicator::all_reduce(void* data, std::size_t count, ElementType type, ReduceOp, Stream) {
  const std::size_t bytes = count * element_size(type);
  note(bytes);
  if (!copies_) return;
  scratch_.resize(bytes);
  std::memcpy(scratch_.data(), data, bytes);
}

void CopyingCommunicator::reduce_scatter(const void* in, void* out, std::size_t count, ElementType type,
                                         ReduceOp, Stream) {
  const std::size_t bytes = count * element_size(type);
  if (copies_) std::memmove(out, in, bytes);
  note(bytes * static_cast<std::size_t>(size()));
}

void CopyingCommunicator::all_gather(const void* in, void* out, std::size_t count, ElementType type, Stream) {
  const std::size_t bytes = count * element_size(type);
  for (int i = 0; i < size() && copies_; ++i)
    std::memmove(static_cast<char*>(out) + static_cast<std::size_t>(i) * bytes, in, bytes);
  note(bytes * static_cast<std::size_t>(size()));
}

void CopyingCommunicator::reduce_own_block(void*, std::size_t count, ElementType type, ReduceOp, Stream) {
  note(count * element_size(type));
}

void CopyingCommunicator::gather_blocks(void*, std::size_t count, ElementType type, Stream) {
  note(count * element_size(type));
}

void CopyingCommunicator::broadcast(void*, std::size_t count, ElementType type, int, Stream) {
  note(count * element_size(type));
}

std::unique_ptr<Work> CopyingCommunicator::exchange(std::span<const Transfer>, Stream) {
  throw std::logic_error("a layer sent a message of its own: the profiler measures collectives only");
}

std::vector<int64_t> CopyingCommunicator::take_bytes() {
  return std::exchange(bytes_, {});
}

}  // namespace sailor
