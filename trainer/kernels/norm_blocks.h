// The device kernels of norm.h. norm_forward: a block per row. norm_backward: a block per part of the rows,
// whose threads keep the sums of their own columns. norm_sums adds the parts: a thread per column.
#pragma once

#include "trainer/kernels/arithmetic.h"
#include "trainer/kernels/grid.h"
#include "trainer/kernels/norm.h"

namespace sailor::kernels {

template <class T>
SAILOR_BLOCKS Computed<T> weight_at(const void* values, Element type, int64_t i) {
  if (type == Element::f32) return static_cast<Computed<T>>(static_cast<const float*>(values)[i]);
  return load(static_cast<const T*>(values)[i]);
}
template <class T>
SAILOR_BLOCKS void store_weight(Computed<T> value, void* values, Element type, int64_t i) {
  if (type == Element::f32) {
    static_cast<float*>(values)[i] = static_cast<float>(value);
  } else {
    store(value, static_cast<T*>(values)[i]);
  }
}

template <class T, class Grid>
SAILOR_BLOCKS void norm_forward_blocks(Grid& grid, const NormForward& norm) {
  using R = Computed<T>;
  const int64_t n = norm.columns, first = grid.block() * n;
  const T* row = static_cast<const T*>(norm.x) + first;
  R sum = 0;
  if (norm.addition) {
    const T* const addition = static_cast<const T*>(norm.addition) + first;
    T* const added = static_cast<T*>(norm.sum) + first;
    for (int64_t i = grid.thread(); i < n; i += grid.threads()) {
      store(load(row[i]) + load(addition[i]), added[i]);
      sum += load(added[i]);
    }
    row = added;  // every thread reads what it wrote itself
  } else if (norm.centred) {
    for (int64_t i = grid.thread(); i < n; i += grid.threads()) sum += load(row[i]);
  }
  const R mean = norm.centred ? block_sum(grid, sum) / static_cast<R>(n) : R(0);
  R squares = 0;
  for (int64_t i = grid.thread(); i < n; i += grid.threads()) {
    const R distance = load(row[i]) - mean;
    squares += distance * distance;
  }
  const R variance = block_sum(grid, squares) / static_cast<R>(n);
  const R scale = R(1) / square_root(variance + static_cast<R>(norm.epsilon));
  T* const y = static_cast<T*>(norm.y) + first;
  for (int64_t i = grid.thread(); i < n; i += grid.threads()) {
    R value = (load(row[i]) - mean) * scale *
              (weight_at<T>(norm.weight, norm.weight_type, i) + static_cast<R>(norm.weight_offset));
    if (norm.bias) value += weight_at<T>(norm.bias, norm.weight_type, i);
    store(value, y[i]);
  }
  if (grid.thread() > 0) return;
  if (norm.mean) static_cast<R*>(norm.mean)[grid.block()] = mean;
  static_cast<R*>(norm.scale)[grid.block()] = scale;
}

template <class T, class Grid>
SAILOR_BLOCKS void norm_backward_blocks(Grid& grid, const NormBackward& norm) {
  using R = Computed<T>;
  const int64_t n = norm.columns, part = grid.block(), parts = grid.blocks();
  R* const sums = norm.partial_sums ? static_cast<R*>(norm.partial_sums) + part * 2 * n : nullptr;
  for (int64_t i = grid.thread(); sums && i < n; i += grid.threads()) sums[i] = sums[n + i] = 0;
  for (int64_t row = part * norm.rows / parts; row < (part + 1) * norm.rows / parts; ++row) {
    const T* const s = static_cast<const T*>(norm.sum) + row * n;
    const T* const g = static_cast<const T*>(norm.for_y) + row * n;
    const R mean = norm.centred ? static_cast<const R*>(norm.mean)[row] : R(0);
    const R scale = static_cast<const R*>(norm.scale)[row];
    const auto z_at = [&](int64_t i) { return (load(s[i]) - mean) * scale; };
    const auto u_at = [&](int64_t i) {
      return load(g[i]) *
             (weight_at<T>(norm.weight, norm.weight_type, i) + static_cast<R>(norm.weight_offset));
    };
    R sum_u = 0, sum_uz = 0;
    for (int64_t i = grid.thread(); i < n; i += grid.threads()) {
      const R z = z_at(i), u = u_at(i);
      sum_u += u;
      sum_uz += u * z;
      if (!sums) continue;
      sums[i] += load(g[i]) * z;
      sums[n + i] += load(g[i]);
    }
    const R mean_u = norm.centred ? block_sum(grid, sum_u) / static_cast<R>(n) : R(0);
    const R mean_uz = block_sum(grid, sum_uz) / static_cast<R>(n);
    T* const for_x = static_cast<T*>(norm.for_x) + row * n;
    for (int64_t i = grid.thread(); i < n; i += grid.threads()) {
      R value = scale * (u_at(i) - mean_u - z_at(i) * mean_uz);
      if (norm.for_sum) value += load((static_cast<const T*>(norm.for_sum) + row * n)[i]);
      store(value, for_x[i]);
    }
  }
}

template <class T, class Grid>
SAILOR_BLOCKS void norm_sums_blocks(Grid& grid, const NormBackward& norm) {
  using R = Computed<T>;
  const int64_t n = norm.columns, i = int64_t{grid.block()} * grid.threads() + grid.thread();
  if (i >= n) return;
  const R* const sums = static_cast<const R*>(norm.partial_sums);
  R of_weight = 0, of_bias = 0;
  for (int64_t part = 0; part < norm.parts(); ++part) {
    of_weight += sums[part * 2 * n + i];
    of_bias += sums[part * 2 * n + n + i];
  }
  if (norm.adds && norm.for_weight) of_weight += weight_at<T>(norm.for_weight, norm.weight_type, i);
  if (norm.adds && norm.for_bias) of_bias += weight_at<T>(norm.for_bias, norm.weight_type, i);
  if (norm.for_weight) store_weight<T>(of_weight, norm.for_weight, norm.weight_type, i);
  if (norm.for_bias) store_weight<T>(of_bias, norm.for_bias, norm.weight_type, i);
}

}  // namespace sailor::kernels
