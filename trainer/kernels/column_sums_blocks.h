// The device kernels of column_sums.h. column_sums: a block per part of the rows and range of columns, whose
// warps take turns at the rows. column_sums_of_parts adds the parts: a warp for each of several ranges of
// them, a thread per column.
#pragma once

#include "trainer/kernels/column_sums.h"
#include "trainer/kernels/grid.h"

namespace sailor::kernels {

// Columns of a block: a pack or an element for each thread of a warp.
template <class T>
SAILOR_BLOCKS int columns_of_block(bool in_packs) {
  return kWarp * (in_packs ? kPack<T> : 1);
}

template <class T, class Grid>
SAILOR_BLOCKS void column_sums_blocks(Grid& grid, const ColumnSums& sums) {
  using R = Computed<T>;
  const bool in_packs = sums.in_packs();
  const int width = in_packs ? kPack<T> : 1, warps = grid.threads() / kWarp;
  const int64_t ranges = (sums.columns + columns_of_block<T>(in_packs) - 1) / columns_of_block<T>(in_packs);
  const int64_t part = grid.block() / ranges, range = grid.block() % ranges;
  const int64_t i = range * kWarp + grid.thread() % kWarp,
                all = sums.columns / width;  // of packs, or of columns
  const int64_t end = (part + 1) * sums.rows / sums.parts();
  R mine[kPack<T>] = {};
  if (i < all) {
    int64_t row = part * sums.rows / sums.parts() + grid.thread() / kWarp;
    if (in_packs) {
      const Pack<T>* const matrix = packs_at<T>(sums.matrix);
      constexpr int kAtOnce = 4;  // rows whose elements are on their way together
      for (; row + (kAtOnce - 1) * warps < end; row += kAtOnce * warps) {
        Pack<T> packs[kAtOnce];
        SAILOR_UNROLL
        for (int k = 0; k < kAtOnce; ++k) packs[k] = matrix[(row + k * warps) * all + i];
        SAILOR_UNROLL
        for (int k = 0; k < kAtOnce; ++k) {
          for (int column = 0; column < kPack<T>; ++column) mine[column] += load(packs[k], column);
        }
      }
      for (; row < end; row += warps) {
        const Pack<T> pack = matrix[row * all + i];
        for (int column = 0; column < kPack<T>; ++column) mine[column] += load(pack, column);
      }
    } else {
      for (; row < end; row += warps) mine[0] += load(static_cast<const T*>(sums.matrix)[row * all + i]);
    }
  }
  R* const of_threads = shared_array<R>(grid);  // [column of a thread][thread]
  SAILOR_UNROLL
  for (int column = 0; column < kPack<T>; ++column)
    if (column < width) of_threads[column * grid.threads() + grid.thread()] = mine[column];
  grid.barrier();
  if (i >= all || grid.thread() >= kWarp) return;
  R* const partial = static_cast<R*>(sums.partial_sums) + part * sums.columns + i * width;
  for (int column = 0; column < width; ++column) {
    R sum = 0;
    for (int warp = 0; warp < warps; ++warp)
      sum += of_threads[column * grid.threads() + warp * kWarp + grid.thread()];
    partial[column] = sum;
  }
}

template <class T, class Grid>
SAILOR_BLOCKS void column_sums_of_parts_blocks(Grid& grid, const ColumnSums& sums) {
  using R = Computed<T>;
  const int64_t i = int64_t{grid.block()} * kWarp + grid.thread() % kWarp;
  const int warps = grid.threads() / kWarp;
  R mine = 0;
  for (int64_t part = grid.thread() / kWarp; i < sums.columns && part < sums.parts(); part += warps)
    mine += static_cast<const R*>(sums.partial_sums)[part * sums.columns + i];
  R* const of_threads = shared_array<R>(grid);
  of_threads[grid.thread()] = mine;
  grid.barrier();
  if (i >= sums.columns || grid.thread() >= kWarp) return;
  for (int warp = 1; warp < warps; ++warp) mine += of_threads[warp * kWarp + grid.thread()];
  static_cast<R*>(sums.sums)[i] += mine;
}

}  // namespace sailor::kernels
