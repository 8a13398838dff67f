// The parts of buckets that a rank exchanges with its groups, in flat buffers of gradients or values.
//
// A part is exchanged in pieces that stay in a processor's cache, on a device as a whole. Of each piece every
// member of the group owns the block that block_of() gives it. The elements of a part lie together in a
// buffer, unless the rank exchanges different rows with different groups: then a staging area has them during
// the exchange. One thread at a time per object.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "trainer/comm/communicator.h"
#include "trainer/comm/device.h"
#include "trainer/parallel/gradient_buckets.h"

namespace sailor {

// A flat buffer, and where each parameter is in it. Refers to `offsets`.
struct FlatMemory {
  at::Tensor flat;
  const std::vector<int64_t>& offsets;

  std::size_t element_bytes() const { return static_cast<std::size_t>(flat.element_size()); }
  char* at(std::size_t parameter, int64_t first = 0) const {
    return static_cast<char*>(flat.data_ptr()) +
           static_cast<std::size_t>(offsets[parameter] + first) * element_bytes();
  }
};

struct Part {
  const GradientPart* elements = nullptr;
  Communicator* group = nullptr;   // of which every member owns a block
  Communicator* copies = nullptr;  // the owners of the same block, with hybrid ZeRO
  bool contiguous = true;
  // Where the blocks begin that this rank owns, one after the other: with ZeRO-2 among the sums of gradients,
  // with ZeRO-3 among the values. -1: not there.
  int64_t sums = -1, values = -1;
};

class PartMemory {
 public:
  // `element_bytes` of gradients, the larger type. `device` outlives the object.
  PartMemory(Device& device, int64_t element_bytes) : device_(device), element_bytes_(element_bytes) {}

  // At least as large as every piece that needs it.
  void set_staging(at::Tensor bytes) { staging_ = std::move(bytes); }
  const at::Tensor& staging() const { return staging_; }
  char* staging_data() const { return static_cast<char*>(staging_.data_ptr()); }

  // Elements of a part's pieces; the last one may have fewer.
  int64_t piece_elements(const Part& part) const;
  // Calls f(first, count) for each piece.
  template <class Function>
  void for_each_piece(const Part& part, const Function& function) const {
    const int64_t most = piece_elements(part);
    for (int64_t first = 0; first < part.elements->count; first += most)
      function(first, std::min(most, part.elements->count - first));
  }
  // Calls f(first, count, index) for the block of each piece that this rank owns; `index` is that of its
  // first element among the part's own blocks.
  template <class Function>
  void for_each_own_block(const Part& part, const Function& function) const {
    for_each_piece(part, [&](int64_t first, int64_t count) {
      const BlockRange own = own_block(part, count);
      function(first + static_cast<int64_t>(own.first), static_cast<int64_t>(own.count),
               own_index(part, first));
    });
  }
  // The block of a piece of `count` elements, and the index of the first element among the own blocks.
  static BlockRange own_block(const Part& part, int64_t count) {
    return block_of(static_cast<std::size_t>(count), part.group->size(), part.group->rank());
  }
  int64_t own_index(const Part& part, int64_t first) const;

  // Memory of elements [first, ...) of a part: in place if the part is contiguous, else in the staging area,
  // which copy() fills or empties.
  char* memory_of(const Part& part, const FlatMemory& memory, int64_t first) const;
  enum class Direction { out, in };  // relative to the buffer
  void copy(const Part& part, const FlatMemory& memory, int64_t first, int64_t count, char* elements,
            Direction direction, Stream stream) const;

  // Elements [first, first + count) of a part, as runs of parameters' elements: f(parameter, first, count).
  template <class Function>
  static void for_each_run(const Part& part, int64_t first, int64_t count, const Function& function) {
    for (const GradientSegment& segment : part.elements->segments) {
      if (count <= 0) return;
      if (first >= segment.count) {
        first -= segment.count;
        continue;
      }
      const int64_t length = std::min(count, segment.count - first);
      function(segment.parameter, segment.first + first, length);
      count -= length;
      first = 0;
    }
  }

 private:
  Device& device_;
  const int64_t element_bytes_;
  at::Tensor staging_;  // bytes
};

}  // namespace sailor
