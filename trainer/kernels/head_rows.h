// Finds and turns the rows of heads.h, for kernels.
#pragma once

#include "trainer/kernels/heads.h"

namespace sailor::kernels {

template <class T>
SAILOR_KERNEL T* row_of(const HeadRows& rows, int64_t batch, int64_t head, int64_t token) {
  return static_cast<T*>(rows.data) + batch * rows.batch + head * rows.head + token * rows.token;
}

template <class T>
struct RowMove {
  const T* from;
  T* to;
  bool turned;
};

// `packed_head`: its index in the packed tensor.
template <class T>
SAILOR_KERNEL RowMove<T> row_move(const HeadMove& move, int64_t batch, int64_t token, int64_t packed_head) {
  const int64_t of_group = move.heads_of_group();
  const int64_t group = packed_head / of_group, member = packed_head % of_group;
  T* const packed = row_of<T>(move.packed, batch, packed_head, token);
  T* const separate = member < move.queries
                          ? row_of<T>(move.query, batch, group * move.queries + member, token)
                          : row_of<T>(member == move.queries ? move.key : move.value, batch, group, token);
  const bool turned = move.pairs > 0 && member <= move.queries;
  if (move.to_packed) return {separate, packed, turned};
  return {packed, separate, turned};
}

// Pairs begin, begin + step, ... of a turned row, and the elements behind the pairs; of other rows all
// elements.
template <class T>
SAILOR_KERNEL void move_row(const HeadMove& move, const RowMove<T>& row, int64_t token, int64_t begin,
                            int64_t step) {
  using R = Computed<T>;
  const T* __restrict from = row.from;
  T* __restrict to = row.to;
  if (row.turned) {
    const T* __restrict cosine = static_cast<const T*>(move.cosine) + token * move.pairs;
    const T* __restrict sine = static_cast<const T*>(move.sine) + token * move.pairs;
    const R sign = move.backwards ? R(-1) : R(1);
    const int64_t pairs = move.pairs;
    if (move.interleaved) {
      for (int64_t i = begin; i < pairs; i += step) {
        const R a = load(from[2 * i]), b = load(from[2 * i + 1]), c = load(cosine[i]),
                s = sign * load(sine[i]);
        store(a * c - b * s, to[2 * i]);
        store(b * c + a * s, to[2 * i + 1]);
      }
    } else {
      for (int64_t i = begin; i < pairs; i += step) {
        const R a = load(from[i]), b = load(from[pairs + i]), c = load(cosine[i]), s = sign * load(sine[i]);
        store(a * c - b * s, to[i]);
        store(b * c + a * s, to[pairs + i]);
      }
    }
  }
  for (int64_t i = (row.turned ? 2 * move.pairs : 0) + begin; i < move.size; i += step) to[i] = from[i];
}

}  // namespace sailor::kernels
