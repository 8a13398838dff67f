// The device kernels of cross_entropy.h: a block per row. Every thread merges its columns' maximum and sum of
// exponentials online; then the threads' are merged.
#pragma once

#include <limits>

#include "trainer/kernels/arithmetic.h"
#include "trainer/kernels/cross_entropy.h"
#include "trainer/kernels/pack.h"

namespace sailor::kernels {

// The number of packs at the beginning of every row that are real columns and can be moved as packs.
template <class T>
SAILOR_BLOCKS int64_t real_packs(const CrossEntropy& loss) {
  return whole_packs(loss.columns, loss.type) && aligned(loss.logits) ? loss.real / kPack<T> : 0;
}

// A sum of exponentials relative to the largest value so far.
template <class R>
struct OnlineSum {
  R largest = std::numeric_limits<R>::lowest(), sum = 0;

  SAILOR_BLOCKS void raise(R value) {
    if (!(value > largest)) return;
    sum *= sum == R(0) ? R(0) : exponential(largest - value);
    largest = value;
  }
  SAILOR_BLOCKS void add(R value) { sum += exponential(value - largest); }
};

template <class T, class Grid>
SAILOR_BLOCKS void cross_entropy_forward_blocks(Grid& grid, const CrossEntropy& loss) {
  using R = Computed<T>;
  const int64_t row = grid.block(), packs = real_packs<T>(loss);
  const T* const x = static_cast<const T*>(loss.logits) + row * loss.columns;
  OnlineSum<R> mine;
  for (int64_t i = grid.thread(); i < packs; i += grid.threads()) {
    const Pack<T> pack = packs_at<T>(x)[i];
    R largest = load(pack, 0);
    for (int k = 1; k < kPack<T>; ++k) largest = load(pack, k) > largest ? load(pack, k) : largest;
    mine.raise(largest);
    for (int k = 0; k < kPack<T>; ++k) mine.add(load(pack, k));
  }
  for (int64_t i = packs * kPack<T> + grid.thread(); i < loss.real; i += grid.threads()) {
    mine.raise(load(x[i]));
    mine.add(load(x[i]));
  }
  const R largest = block_max(grid, mine.largest);
  const R sum = block_sum(grid, mine.sum == R(0) ? R(0) : mine.sum * exponential(mine.largest - largest));
  if (grid.thread() > 0) return;
  static_cast<R*>(loss.largest)[row] = largest;
  static_cast<R*>(loss.sum)[row] = sum;
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
  const auto gradient_of = [&](R value, int64_t column) {
    return counts ? of_softmax * exponential(value - shift) - (column == target ? of_target : R(0)) : R(0);
  };
  const int64_t packs = real_packs<T>(loss);
  for (int64_t i = grid.thread(); i < packs; i += grid.threads()) {
    Pack<T> pack = packs_at<T>(x)[i];
    for (int k = 0; k < kPack<T>; ++k) store(gradient_of(load(pack, k), i * kPack<T> + k), pack.elements[k]);
    packs_at<T>(x)[i] = pack;
  }
  for (int64_t i = packs * kPack<T> + grid.thread(); i < loss.columns; i += grid.threads())
    store(i < loss.real ? gradient_of(load(x[i]), i) : R(0), x[i]);
}

}  // namespace sailor::kernels
