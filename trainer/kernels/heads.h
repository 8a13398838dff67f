// Moves the rows of a head, one a token, between a packed tensor and the queries, keys and values of
// attention, and turns queries and keys by rotary angles on the way: one pass each way.
//
// A packed tensor has `groups` groups of heads for each token; a group has `queries` heads for queries, and
// if `has_values` one for keys and one for values. Query head h of group g is head g queries + h of the
// separate queries. Each tensor has strides, in elements, of batch, head and token; rows are contiguous.
//
// Of a row's first 2 `pairs` elements, element i and element pairs + i are a pair (interleaved: elements 2 i
// and 2 i + 1) that is turned by the angle of its token and i: (a, b) -> (a c - b s, b c + a s).
#pragma once

#include "trainer/kernels/pack.h"
#include "trainer/kernels/place.h"

namespace sailor::kernels {

inline constexpr int kThreadsOfMoveHeads = 128;  // of a block on devices

struct HeadRows {
  void* data = nullptr;
  int64_t batch = 0, head = 0, token = 0;  // strides

  SAILOR_KERNEL bool in_packs(Element type) const {
    return aligned(data) && whole_packs(batch, type) && whole_packs(head, type) && whole_packs(token, type);
  }
};

struct HeadMove {
  Element type = Element::f32;
  bool to_packed = false;  // else from it
  bool has_values = false;
  int64_t batch = 0, tokens = 0, groups = 0, queries = 0, size = 0;
  HeadRows packed, query, key, value;
  int64_t pairs = 0;  // 0: nothing is turned
  bool interleaved = false;
  bool backwards = false;        // turns by the negative angle: the gradient
  const void* cosine = nullptr;  // [tokens, pairs], of the same type
  const void* sine = nullptr;

  SAILOR_KERNEL int64_t heads_of_group() const { return queries + (has_values ? 2 : 0); }
  SAILOR_KERNEL int64_t rows() const { return batch * tokens * groups * heads_of_group(); }
  // Can devices move packs? Then packs() indices suffice.
  SAILOR_KERNEL bool in_packs() const {
    const bool all_rows = packed.in_packs(type) && query.in_packs(type) &&
                          (!has_values || (key.in_packs(type) && value.in_packs(type)));
    return all_rows && whole_packs(size, type) && aligned(cosine, sine) &&
           whole_packs(interleaved ? 2 * pairs : pairs, type) && packs() < int64_t{1} << 31;
  }
  SAILOR_KERNEL int64_t packs() const { return rows() * (size * bytes_of(type) / kPackBytes); }
};

void move_heads(const HeadMove& move, const Place& place);

}  // namespace sailor::kernels
