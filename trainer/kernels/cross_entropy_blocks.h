// The device kernels of cross_entropy.h: a block per row. Every thread merges its columns' maximum and sum of
// exponentials online; then the threads' are merged.
#pragma once

#include <limits>

#include "trainer/kernels/arithmetic.h"
#include "trainer/kernels/cross_entropy.h"
#include "trainer/kernels/grid.h"

namespace sailor::kernels {

template <class T, class Grid>
SAILOR_BLOCKS void cross_entropy_forward_blocks(Grid& grid, const CrossEntropy& loss) {
  using R = Computed<T>;
  const int64_t row = grid.block();
  const T* const x = static_cast<const T*>(loss.logits) + row * loss.columns;
  constexpr R kNothing = std::numeric_limits<R>::lowest();
  R mine = kNothing, sum = 0;
  for (int64_t i = grid.thread(); i < loss.real; i += grid.threads()) {
    const R value = load(x[i]);
    if (value > mine) {
      sum *= sum == R(0) ? R(0) : exponential(mine - value);
      mine = value;
    }
    sum += exponential(value - mine);
  }
  const R largest = block_max(grid, mine);
  const R all = block_sum(grid, sum == R(0) ? R(0) : sum * exponential(mine - largest));
  if (grid.thread() > 0) return;
  static_cast<R*>(loss.largest)[row] = largest;
  static_cast<R*>(loss.sum)[row] = all;
  const int64_t target = loss.targets[row] - loss.first_column;
  static_cast<R*>(loss.score)[row] = target >= 0 && target < loss.real ? load(x[target]) : R(0);
}

template <class T, class Grid>
SAILOR_BLOCKS void cross_entropy_backward_blocks(Grid& grid, const CrossEntropy& loss) {
  using R = Computed<T>;
  const int64_t row = grid.block(), target = loss.targets[row] - loss.first_column;
  T* const x = static_cast<T*>(loss.logits) + row * loss.columns;
  const R of_softmax = static_cast<const R*>(loss.of_softmax)[row];
  const R of_target = static_cast<const R*>(loss.of_target)[row];
  const R shift = static_cast<const R*>(loss.shift)[row];
  const bool counts = of_softmax != R(0) || of_target != R(0);
  for (int64_t i = grid.thread(); i < loss.columns; i += grid.threads()) {
    R gradient = 0;
    if (counts && i < loss.real)
      gradient = of_softmax * exponential(load(x[i]) - shift) - (i == target ? of_target : R(0));
    store(gradient, x[i]);
  }
}

}  // namespace sailor::kernels
