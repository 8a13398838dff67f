// The device kernels of norm.h. norm_forward: a block per row. norm_backward: a block per part of the rows,
// whose threads keep the sums of their own columns. norm_sums adds the parts: a warp for each of several
// ranges of them, a thread per column. Rows of whole packs are read once and kept in registers, if they are
// not too long for a block.
#pragma once

#include "trainer/kernels/arithmetic.h"
#include "trainer/kernels/norm.h"
#include "trainer/kernels/pack.h"

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
SAILOR_BLOCKS void norm_forward_of_elements(Grid& grid, const NormForward& norm) {
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
SAILOR_BLOCKS void norm_backward_of_elements(Grid& grid, const NormBackward& norm) {
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

// The weights or biases of the columns of pack i.
template <class T>
SAILOR_BLOCKS void weights_at(const void* values, Element type, int64_t i, Computed<T> (&weights)[kPack<T>]) {
  if (type == Element::f32) {
    for (int k = 0; k < kPack<T>; ++k)
      weights[k] = static_cast<Computed<T>>(static_cast<const float*>(values)[i * kPack<T> + k]);
  } else {
    const Pack<T> pack = packs_at<T>(values)[i];
    for (int k = 0; k < kPack<T>; ++k) weights[k] = load(pack, k);
  }
}

// Calls work(held, i) for the packs i of a row that are the calling thread's.
template <int kHeld, class Grid, class Work>
SAILOR_BLOCKS void each_held(const Grid& grid, int64_t packs, const Work& work) {
  // Unrolled, so that what is held is in registers.
  SAILOR_UNROLL
  for (int held = 0; held < kHeld; ++held) {
    const int64_t i = grid.thread() + int64_t{held} * grid.threads();
    if (i < packs) work(held, i);
  }
}

template <class T, class Grid>
SAILOR_BLOCKS void norm_forward_of_packs(Grid& grid, const NormForward& norm) {
  using R = Computed<T>;
  const int64_t packs = norm.columns / kPack<T>, first = grid.block() * packs;
  const R count = static_cast<R>(norm.columns);
  R row[kHeldByForward][kPack<T>];
  R sum = 0;
  each_held<kHeldByForward>(grid, packs, [&](int held, int64_t i) {
    Pack<T> x = packs_at<T>(norm.x)[first + i];
    if (norm.addition) {
      const Pack<T> addition = packs_at<T>(norm.addition)[first + i];
      for (int k = 0; k < kPack<T>; ++k) store(load(x, k) + load(addition, k), x.elements[k]);
      packs_at<T>(norm.sum)[first + i] = x;
    }
    for (int k = 0; k < kPack<T>; ++k) sum += row[held][k] = load(x, k);
  });
  const R mean = norm.centred ? block_sum(grid, sum) / count : R(0);
  R squares = 0;
  each_held<kHeldByForward>(grid, packs, [&](int held, int64_t) {
    for (int k = 0; k < kPack<T>; ++k) squares += (row[held][k] - mean) * (row[held][k] - mean);
  });
  const R scale = R(1) / square_root(block_sum(grid, squares) / count + static_cast<R>(norm.epsilon));
  each_held<kHeldByForward>(grid, packs, [&](int held, int64_t i) {
    R weight[kPack<T>], bias[kPack<T>] = {};
    weights_at<T>(norm.weight, norm.weight_type, i, weight);
    if (norm.bias) weights_at<T>(norm.bias, norm.weight_type, i, bias);
    Pack<T> y;
    for (int k = 0; k < kPack<T>; ++k)
      store((row[held][k] - mean) * scale * (weight[k] + static_cast<R>(norm.weight_offset)) + bias[k],
            y.elements[k]);
    packs_at<T>(norm.y)[first + i] = y;
  });
  if (grid.thread() > 0) return;
  if (norm.mean) static_cast<R*>(norm.mean)[grid.block()] = mean;
  static_cast<R*>(norm.scale)[grid.block()] = scale;
}

template <class T, class Grid>
SAILOR_BLOCKS void norm_backward_of_packs(Grid& grid, const NormBackward& norm) {
  using R = Computed<T>;
  const int64_t packs = norm.columns / kPack<T>, part = grid.block(), parts = grid.blocks();
  const R count = static_cast<R>(norm.columns);
  R of_weight[kHeldByBackward][kPack<T>] = {}, of_bias[kHeldByBackward][kPack<T>] = {};
  for (int64_t row = part * norm.rows / parts; row < (part + 1) * norm.rows / parts; ++row) {
    const int64_t first = row * packs;
    const R mean = norm.centred ? static_cast<const R*>(norm.mean)[row] : R(0);
    const R scale = static_cast<const R*>(norm.scale)[row];
    R z[kHeldByBackward][kPack<T>], u[kHeldByBackward][kPack<T>];
    TwoSums<R> sums{0, 0};
    Pack<T> more[kHeldByBackward];  // is on its way while the others wait for their sums
    each_held<kHeldByBackward>(grid, packs, [&](int held, int64_t i) {
      if (norm.for_sum) more[held] = packs_at<T>(norm.for_sum)[first + i];
      const Pack<T> s = packs_at<T>(norm.sum)[first + i], g = packs_at<T>(norm.for_y)[first + i];
      R weight[kPack<T>];
      weights_at<T>(norm.weight, norm.weight_type, i, weight);
      for (int k = 0; k < kPack<T>; ++k) {
        z[held][k] = (load(s, k) - mean) * scale;
        of_weight[held][k] += load(g, k) * z[held][k];
        of_bias[held][k] += load(g, k);
        u[held][k] = load(g, k) * (weight[k] + static_cast<R>(norm.weight_offset));
        sums.first += u[held][k];
        sums.second += u[held][k] * z[held][k];
      }
    });
    sums = block_sums(grid, sums);
    const R mean_u = norm.centred ? sums.first / count : R(0), mean_uz = sums.second / count;
    each_held<kHeldByBackward>(grid, packs, [&](int held, int64_t i) {
      Pack<T> for_x;
      for (int k = 0; k < kPack<T>; ++k)
        store(scale * (u[held][k] - mean_u - z[held][k] * mean_uz) +
                  (norm.for_sum ? load(more[held], k) : R(0)),
              for_x.elements[k]);
      packs_at<T>(norm.for_x)[first + i] = for_x;
    });
  }
  if (!norm.partial_sums) return;
  R* const partial = static_cast<R*>(norm.partial_sums) + part * 2 * norm.columns;
  each_held<kHeldByBackward>(grid, packs, [&](int held, int64_t i) {
    for (int k = 0; k < kPack<T>; ++k) {
      partial[i * kPack<T> + k] = of_weight[held][k];
      partial[norm.columns + i * kPack<T> + k] = of_bias[held][k];
    }
  });
}

template <class T, class Grid>
SAILOR_BLOCKS void norm_forward_blocks(Grid& grid, const NormForward& norm) {
  if (norm.in_packs() && norm.columns / kPack<T> <= int64_t{kHeldByForward} * grid.threads()) {
    norm_forward_of_packs<T>(grid, norm);
  } else {
    norm_forward_of_elements<T>(grid, norm);
  }
}

template <class T, class Grid>
SAILOR_BLOCKS void norm_backward_blocks(Grid& grid, const NormBackward& norm) {
  if (norm.in_packs() && norm.columns / kPack<T> <= int64_t{kHeldByBackward} * grid.threads()) {
    norm_backward_of_packs<T>(grid, norm);
  } else {
    norm_backward_of_elements<T>(grid, norm);
  }
}

template <class T, class Grid>
SAILOR_BLOCKS void norm_sums_blocks(Grid& grid, const NormBackward& norm) {
  using R = Computed<T>;
  const int64_t n = norm.columns, i = int64_t{grid.block()} * kWarp + grid.thread() % kWarp;
  const int warps = grid.threads() / kWarp;
  const R* const sums = static_cast<const R*>(norm.partial_sums);
  TwoSums<R> mine{0, 0};
  for (int64_t part = grid.thread() / kWarp; i < n && part < norm.parts(); part += warps) {
    mine.first += sums[part * 2 * n + i];
    mine.second += sums[part * 2 * n + n + i];
  }
  TwoSums<R>* const of_threads = shared_array<TwoSums<R>>(grid);
  of_threads[grid.thread()] = mine;
  grid.barrier();
  if (i >= n || grid.thread() >= kWarp) return;
  for (int warp = 1; warp < warps; ++warp) {
    mine.first += of_threads[warp * kWarp + grid.thread()].first;
    mine.second += of_threads[warp * kWarp + grid.thread()].second;
  }
  if (norm.adds && norm.for_weight) mine.first += weight_at<T>(norm.for_weight, norm.gradient_type, i);
  if (norm.adds && norm.for_bias) mine.second += weight_at<T>(norm.for_bias, norm.gradient_type, i);
  if (norm.for_weight) store_weight<T>(mine.first, norm.for_weight, norm.gradient_type, i);
  if (norm.for_bias) store_weight<T>(mine.second, norm.for_bias, norm.gradient_type, i);
}

}  // namespace sailor::kernels
