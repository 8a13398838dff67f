// The device kernel of heads.h: a warp per row.
#pragma once

#include "trainer/kernels/grid.h"
#include "trainer/kernels/head_rows.h"

namespace sailor::kernels {

template <class T, class Grid>
SAILOR_BLOCKS void move_heads_blocks(Grid& grid, const HeadMove& move) {
  const int64_t heads = move.groups * move.heads_of_group();
  const int64_t warps = grid.threads() / kWarp, row = grid.block() * warps + grid.thread() / kWarp;
  if (row >= move.batch * move.tokens * heads) return;
  const int64_t head = row % heads, token = row / heads % move.tokens, batch = row / heads / move.tokens;
  move_row<T>(move, row_move<T>(move, batch, token, head), token, grid.thread() % kWarp, kWarp);
}

}  // namespace sailor::kernels
