// The device kernel of heads.h: a thread per pack of a row, or a warp per row.
#pragma once

#include "trainer/kernels/grid.h"
#include "trainer/kernels/head_rows.h"

namespace sailor::kernels {

// Of pairs of neighbours, the pack is turned; of others, it and that of the other halves of its pairs, whose
// own thread has nothing to do.
template <class T>
SAILOR_BLOCKS void turn_pack(const HeadMove& move, const RowMove<T>& row, int64_t token, int pack) {
  using R = Computed<T>;
  const R sign = move.backwards ? R(-1) : R(1);
  const int64_t angles = token * move.pairs;
  if (move.interleaved) {
    const T* const cosine = static_cast<const T*>(move.cosine) + angles + pack * kPack<T> / 2;
    const T* const sine = static_cast<const T*>(move.sine) + angles + pack * kPack<T> / 2;
    const Pack<T> from = packs_at<T>(row.from)[pack];
    Pack<T> to;
    for (int k = 0; k < kPack<T> / 2; ++k) {
      const R a = load(from, 2 * k), b = load(from, 2 * k + 1), c = load(cosine[k]), s = sign * load(sine[k]);
      store(a * c - b * s, to.elements[2 * k]);
      store(b * c + a * s, to.elements[2 * k + 1]);
    }
    packs_at<T>(row.to)[pack] = to;
    return;
  }
  const int half = static_cast<int>(move.pairs) / kPack<T>;
  if (pack >= half) return;
  const Pack<T> cosine = packs_at<T>(static_cast<const T*>(move.cosine) + angles)[pack];
  const Pack<T> sine = packs_at<T>(static_cast<const T*>(move.sine) + angles)[pack];
  const Pack<T> first = packs_at<T>(row.from)[pack], second = packs_at<T>(row.from)[half + pack];
  Pack<T> to_first, to_second;
  for (int k = 0; k < kPack<T>; ++k) {
    const R a = load(first, k), b = load(second, k), c = load(cosine, k), s = sign * load(sine, k);
    store(a * c - b * s, to_first.elements[k]);
    store(b * c + a * s, to_second.elements[k]);
  }
  packs_at<T>(row.to)[pack] = to_first;
  packs_at<T>(row.to)[half + pack] = to_second;
}

template <class T, class Grid>
SAILOR_BLOCKS void move_heads_blocks(Grid& grid, const HeadMove& move) {
  if (move.in_packs()) {
    const auto index = static_cast<uint32_t>(grid.block()) * static_cast<uint32_t>(grid.threads()) +
                       static_cast<uint32_t>(grid.thread());
    if (index >= static_cast<uint32_t>(move.packs())) return;
    const auto packs = static_cast<uint32_t>(move.size) / kPack<T>;
    const auto heads = static_cast<uint32_t>(move.groups * move.heads_of_group());
    const auto tokens = static_cast<uint32_t>(move.tokens);
    const uint32_t row = index / packs, head = row % heads, token = row / heads % tokens,
                   batch = row / heads / tokens;
    const int pack = static_cast<int>(index % packs);
    const RowMove<T> rows = row_move<T>(move, batch, token, head);
    if (rows.turned && pack * kPack<T> < 2 * move.pairs) {
      turn_pack<T>(move, rows, token, pack);
    } else {
      packs_at<T>(rows.to)[pack] = packs_at<T>(rows.from)[pack];
    }
    return;
  }
  const int64_t heads = move.groups * move.heads_of_group();
  const int64_t warps = grid.threads() / kWarp, row = grid.block() * warps + grid.thread() / kWarp;
  if (row >= move.rows()) return;
  const int64_t head = row % heads, token = row / heads % move.tokens, batch = row / heads / move.tokens;
  move_row<T>(move, row_move<T>(move, batch, token, head), token, grid.thread() % kWarp, kWarp);
}

}  // namespace sailor::kernels
