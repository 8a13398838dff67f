#include "trainer/parallel/part_memory.h"

namespace sailor {
namespace {

// Large enough to outweigh latency, and small enough for the sums to stay in a processor's cache.
constexpr int64_t kPieceBytes = int64_t{4} << 20;

}  // namespace

int64_t PartMemory::piece_elements(const Part& part) const {
  return device_.asynchronous() ? part.elements->count : kPieceBytes / element_bytes_;
}

int64_t PartMemory::own_index(const Part& part, int64_t first) const {
  const int64_t most = piece_elements(part);
  return first / most * static_cast<int64_t>(own_block(part, most).count);
}

char* PartMemory::memory_of(const Part& part, const FlatMemory& memory, int64_t first) const {
  if (!part.contiguous) return staging_data();
  const GradientSegment& segment = part.elements->segments.front();
  return memory.at(segment.parameter, segment.first + first);
}

void PartMemory::copy(const Part& part, const FlatMemory& memory, int64_t first, int64_t count,
                      char* elements, Direction direction, Stream stream) const {
  if (part.contiguous) return;
  for_each_run(part, first, count, [&](std::size_t parameter, int64_t begin, int64_t length) {
    char* const place = memory.at(parameter, begin);
    const std::size_t bytes = static_cast<std::size_t>(length) * memory.element_bytes();
    const bool out = direction == Direction::out;
    device_.copy(out ? elements : place, out ? place : elements, bytes, stream);
    elements += bytes;
  });
}

}  // namespace sailor
