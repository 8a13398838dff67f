#include "trainer/kernels/norm.h"

#include <vector>

#include "trainer/kernels/arithmetic.h"
#include "trainer/kernels/grid.h"
#include "trainer/kernels/host_loops.h"
#include "trainer/kernels/traffic.h"

namespace sailor::kernels {
namespace {

constexpr int64_t kElementsOfARange = 1 << 14;
constexpr int kElementsOfAThread = 4;  // of rows that are not moved in packs

template <class Norm>
int threads_of(const Norm& norm, int held, int most) {
  if (!norm.in_packs()) return threads_for(norm.columns, kElementsOfAThread, most);
  return threads_for(norm.columns * bytes_of(norm.type) / kPackBytes, held, most);
}

template <class R>
std::vector<R> widened(const void* values, Element type, int64_t count, double offset) {
  std::vector<R> wide(static_cast<std::size_t>(count));
  with_element(type, [&](auto element) {
    const auto* const from = static_cast<const decltype(element)*>(values);
    for (int64_t i = 0; i < count; ++i)
      wide[static_cast<std::size_t>(i)] = static_cast<R>(load(from[i])) + static_cast<R>(offset);
  });
  return wide;
}

template <class R>
void store_all(const R* values, void* place, Element type, int64_t count, bool adds) {
  with_element(type, [&](auto element) {
    using T = decltype(element);
    T* const to = static_cast<T*>(place);
    for (int64_t i = 0; i < count; ++i)
      store(static_cast<Computed<T>>(values[i]) + (adds ? load(to[i]) : Computed<T>(0)), to[i]);
  });
}

// One row of the forward; `row` is room for it.
template <class T, class R>
SAILOR_KERNEL void normalize_row(const NormForward& norm, int64_t index, R* __restrict row,
                                 const R* __restrict weight, const R* __restrict bias) {
  const int64_t n = norm.columns, first = index * n;
  const T* __restrict x = static_cast<const T*>(norm.x) + first;
  if (norm.addition) {
    const T* __restrict addition = static_cast<const T*>(norm.addition) + first;
    T* __restrict sum = static_cast<T*>(norm.sum) + first;
    for (int64_t i = 0; i < n; ++i) {
      store(load(x[i]) + load(addition[i]), sum[i]);
      row[i] = load(sum[i]);
    }
  } else {
    for (int64_t i = 0; i < n; ++i) row[i] = load(x[i]);
  }
  const R count = static_cast<R>(n);
  const R mean = norm.centred ? sum_of<R>(n, [&](int64_t i) { return row[i]; }) / count : R(0);
  const R variance = sum_of<R>(n, [&](int64_t i) { return (row[i] - mean) * (row[i] - mean); }) / count;
  const R scale = R(1) / square_root(variance + static_cast<R>(norm.epsilon));
  T* __restrict y = static_cast<T*>(norm.y) + first;
  if (bias) {
    for (int64_t i = 0; i < n; ++i) store((row[i] - mean) * scale * weight[i] + bias[i], y[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) store((row[i] - mean) * scale * weight[i], y[i]);
  }
  if (norm.mean) static_cast<R*>(norm.mean)[index] = mean;
  static_cast<R*>(norm.scale)[index] = scale;
}

template <class T>
void forward_on_processor(const NormForward& norm) {
  using R = Computed<T>;
  const std::vector<R> weight = widened<R>(norm.weight, norm.weight_type, norm.columns, norm.weight_offset);
  const std::vector<R> bias =
      norm.bias ? widened<R>(norm.bias, norm.weight_type, norm.columns, 0) : std::vector<R>();
  for_ranges(norm.rows, 1 + kElementsOfARange / norm.columns, [&](int64_t begin, int64_t end) {
    std::vector<R> row(static_cast<std::size_t>(norm.columns));
    vectorised([&] {
      for (int64_t i = begin; i < end; ++i)
        normalize_row<T, R>(norm, i, row.data(), weight.data(), norm.bias ? bias.data() : nullptr);
    });
  });
}

// One row of the backward; `z` and `u` are room for it, and `sums`, if there are, 2 columns long.
template <class T, class R>
SAILOR_KERNEL void backward_row(const NormBackward& norm, int64_t index, R* __restrict z, R* __restrict u,
                                const R* __restrict weight, R* __restrict sums) {
  const int64_t n = norm.columns, first = index * n;
  const T* __restrict s = static_cast<const T*>(norm.sum) + first;
  const T* __restrict g = static_cast<const T*>(norm.for_y) + first;
  const R mean = norm.centred ? static_cast<const R*>(norm.mean)[index] : R(0);
  const R scale = static_cast<const R*>(norm.scale)[index];
  for (int64_t i = 0; i < n; ++i) {
    z[i] = (load(s[i]) - mean) * scale;
    u[i] = load(g[i]);
  }
  if (sums) {
    R* __restrict of_bias = sums + n;
    for (int64_t i = 0; i < n; ++i) {
      sums[i] += u[i] * z[i];
      of_bias[i] += u[i];
    }
  }
  for (int64_t i = 0; i < n; ++i) u[i] *= weight[i];
  const R count = static_cast<R>(n);
  const R mean_u = norm.centred ? sum_of<R>(n, [&](int64_t i) { return u[i]; }) / count : R(0);
  const R mean_uz = sum_of<R>(n, [&](int64_t i) { return u[i] * z[i]; }) / count;
  T* __restrict for_x = static_cast<T*>(norm.for_x) + first;
  if (norm.for_sum) {
    const T* __restrict h = static_cast<const T*>(norm.for_sum) + first;
    for (int64_t i = 0; i < n; ++i) store(scale * (u[i] - mean_u - z[i] * mean_uz) + load(h[i]), for_x[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) store(scale * (u[i] - mean_u - z[i] * mean_uz), for_x[i]);
  }
}

template <class T>
void backward_on_processor(const NormBackward& norm) {
  using R = Computed<T>;
  const int64_t n = norm.columns, parts = norm.parts();
  const std::vector<R> weight = widened<R>(norm.weight, norm.weight_type, n, norm.weight_offset);
  R* const sums = static_cast<R*>(norm.partial_sums);
  for_ranges(parts, 1 + kElementsOfARange * parts / (n * norm.rows + 1), [&](int64_t begin, int64_t end) {
    std::vector<R> room(static_cast<std::size_t>(2 * n));
    vectorised([&] {
      for (int64_t part = begin; part < end; ++part) {
        R* const of_part = sums ? sums + part * 2 * n : nullptr;
        if (of_part) std::fill(of_part, of_part + 2 * n, R(0));
        for (int64_t i = part * norm.rows / parts; i < (part + 1) * norm.rows / parts; ++i)
          backward_row<T, R>(norm, i, room.data(), room.data() + n, weight.data(), of_part);
      }
    });
  });
  if (!sums) return;
  for (int64_t part = 1; part < parts; ++part) {
    for (int64_t i = 0; i < 2 * n; ++i) sums[i] += sums[part * 2 * n + i];
  }
  if (norm.for_weight) store_all(sums, norm.for_weight, norm.gradient_type, n, norm.adds);
  if (norm.for_bias) store_all(sums + n, norm.for_bias, norm.gradient_type, n, norm.adds);
}

}  // namespace

void norm_forward(const NormForward& norm, const Place& place) {
  if (norm.rows == 0) return;
  const RecordedKernel kernel("norm",
                              norm.rows * norm.columns * bytes_of(norm.type) * (norm.addition ? 4 : 2));
  if (place.on_device)
    return launch("norm_forward", norm.type, norm.rows, threads_of(norm, kHeldByForward, kMaxThreads), 0,
                  &norm, place);
  with_element(norm.type, [&](auto element) { forward_on_processor<decltype(element)>(norm); });
}

void norm_backward(const NormBackward& norm, const Place& place) {
  const int64_t computed_bytes = norm.type == Element::f64 ? 8 : 4;
  const int64_t partial_bytes = norm.partial_sums ? norm.parts() * 2 * norm.columns * computed_bytes : 0;
  const RecordedKernel kernel(
      "norm backward",
      norm.rows * norm.columns * bytes_of(norm.type) * (norm.for_sum ? 4 : 3) + 2 * partial_bytes,
      norm.partial_sums ? 2 : 1);
  if (place.on_device) {
    launch("norm_backward", norm.type, norm.parts(),
           threads_of(norm, kHeldByBackward, kThreadsOfNormBackward), 0, &norm, place);
    if (norm.partial_sums)
      launch("norm_sums", norm.type, (norm.columns + kWarp - 1) / kWarp, kThreadsOfNormSums,
             kThreadsOfNormSums * 2 * sizeof(double), &norm, place);
    return;
  }
  with_element(norm.type, [&](auto element) { backward_on_processor<decltype(element)>(norm); });
}

}  // namespace sailor::kernels
