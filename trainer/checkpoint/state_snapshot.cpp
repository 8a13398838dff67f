#include "trainer/checkpoint/state_snapshot.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cstring>

#include "trainer/checkpoint/safetensors.h"

namespace sailor {
namespace {

constexpr int64_t kCopyBytes = int64_t{4} << 20;  // of one thread at a time
constexpr int64_t kAlignment = 64;

std::vector<std::string> state_names(const Optimizer& optimizer) {
  std::vector<std::string> names;
  if (optimizer.slices().empty()) return names;
  for (const OptimizerState& state : optimizer.state(0)) {
    if (state.name != kMasterState) names.push_back(state.name);
  }
  return names;
}

void copy(char* to, const void* from, int64_t bytes) {
  const int64_t parts = (bytes + kCopyBytes - 1) / kCopyBytes;
  at::parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
    const int64_t first = begin * kCopyBytes;
    std::memcpy(to + first, static_cast<const char*>(from) + first,
                static_cast<std::size_t>(std::min(end * kCopyBytes, bytes) - first));
  });
}

}  // namespace

void StateSnapshot::take(const RankState& state, int64_t steps_done) {
  steps_done_ = steps_done;
  optimizer_steps_ = state.optimizer.steps_done();
  optimizer_states_ = state_names(state.optimizer);
  pieces_ = pieces_to_write(state);
  const auto bytes_of = [](const ShardPiece& piece) {
    return piece.count * stored_element_bytes(piece.dtype);
  };
  const auto aligned = [](int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; };
  int64_t needed = 0;
  for (const ShardPiece& piece : pieces_) needed += aligned(bytes_of(piece));
  if (needed > capacity_) {
    bytes_.reset();  // never both
    bytes_ = std::unique_ptr<char[]>(new char[static_cast<std::size_t>(needed)]);
    capacity_ = needed;
  }
  char* next = bytes_.get();
  for (ShardPiece& piece : pieces_) {
    copy(next, piece.data, bytes_of(piece));
    piece.data = next;
    next += aligned(bytes_of(piece));
  }
}

}  // namespace sailor
