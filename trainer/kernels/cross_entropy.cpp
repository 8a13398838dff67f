#include "trainer/kernels/cross_entropy.h"

#include <limits>

#include "trainer/kernels/arithmetic.h"
#include "trainer/kernels/grid.h"
#include "trainer/kernels/host_loops.h"
#include "trainer/kernels/traffic.h"

namespace sailor::kernels {
namespace {

constexpr int kLogitsOfAThread = 16;

template <class T, class R>
SAILOR_KERNEL R largest_of(const T* __restrict x, int64_t count) {
  constexpr int64_t kLanes = 32;
  R lanes[kLanes];
  for (R& lane : lanes) lane = std::numeric_limits<R>::lowest();
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t k = 0; k < kLanes; ++k) {
      const R value = load(x[i + k]);
      lanes[k] = value > lanes[k] ? value : lanes[k];
    }
  }
  for (int64_t k = 0; i < count; ++i, ++k) {
    const R value = load(x[i]);
    lanes[k] = value > lanes[k] ? value : lanes[k];
  }
  R largest = lanes[0];
  for (int64_t k = 1; k < kLanes; ++k) largest = lanes[k] > largest ? lanes[k] : largest;
  return largest;
}

template <class T, class R>
SAILOR_KERNEL void forward_row(const CrossEntropy& loss, int64_t row) {
  constexpr int64_t kBlock = 2048;  // they stay in the nearest cache for the second reading
  const T* x = static_cast<const T*>(loss.logits) + row * loss.columns;
  R largest = std::numeric_limits<R>::lowest(), sum = 0;
  for (int64_t first = 0; first < loss.real; first += kBlock) {
    const int64_t count = std::min(kBlock, loss.real - first);
    const T* __restrict block = x + first;
    const R of_block = largest_of<T, R>(block, count);
    if (of_block > largest) {
      sum *= sum == R(0) ? R(0) : exponential(largest - of_block);
      largest = of_block;
    }
    sum += sum_of<R>(count, [&](int64_t i) { return exponential(load(block[i]) - largest); });
  }
  static_cast<R*>(loss.largest)[row] = largest;
  static_cast<R*>(loss.sum)[row] = sum;
  const int64_t target = loss.targets[row] - loss.first_column;
  static_cast<R*>(loss.score)[row] = target >= 0 && target < loss.real ? load(x[target]) : R(0);
}

template <class T, class R>
SAILOR_KERNEL void backward_row(const CrossEntropy& loss, int64_t row) {
  T* __restrict x = static_cast<T*>(loss.logits) + row * loss.columns;
  const R of_softmax = static_cast<const R*>(loss.of_softmax)[row];
  const R of_target = static_cast<const R*>(loss.of_target)[row];
  int64_t i = 0;
  if (of_softmax != R(0) || of_target != R(0)) {
    const R shift = static_cast<const R*>(loss.shift)[row];
    const int64_t target = loss.targets[row] - loss.first_column;
    const bool is_here = target >= 0 && target < loss.real;
    const R of_target_column = is_here ? of_softmax * exponential(load(x[target]) - shift) - of_target : R(0);
    for (; i < loss.real; ++i) store(of_softmax * exponential(load(x[i]) - shift), x[i]);
    if (is_here) store(of_target_column, x[target]);
  }
  for (; i < loss.columns; ++i) store(R(0), x[i]);
}

template <class T, bool kBackward>
void cross_entropy_on_processor(const CrossEntropy& loss) {
  for_ranges(loss.rows, 1 + (1 << 14) / loss.columns, [&](int64_t begin, int64_t end) {
    vectorised([&] {
      for (int64_t row = begin; row < end; ++row) {
        if constexpr (kBackward) {
          backward_row<T, Computed<T>>(loss, row);
        } else {
          forward_row<T, Computed<T>>(loss, row);
        }
      }
    });
  });
}

template <bool kBackward>
void run_cross_entropy(const CrossEntropy& loss, const Place& place) {
  if (loss.rows * loss.columns == 0) return;
  const RecordedKernel kernel(kBackward ? "cross entropy backward" : "cross entropy",
                              loss.rows * loss.columns * bytes_of(loss.type) * (kBackward ? 2 : 1));
  if (place.on_device)
    return launch(kBackward ? "cross_entropy_backward" : "cross_entropy_forward", loss.type, loss.rows,
                  threads_for(loss.columns, kLogitsOfAThread, kThreadsOfCrossEntropy), 0, &loss, place);
  with_element(loss.type,
               [&](auto element) { cross_entropy_on_processor<decltype(element), kBackward>(loss); });
}

}  // namespace

void cross_entropy_forward(const CrossEntropy& loss, const Place& place) {
  run_cross_entropy<false>(loss, place);
}
void cross_entropy_backward(const CrossEntropy& loss, const Place& place) {
  run_cross_entropy<true>(loss, place);
}

}  // namespace sailor::kernels
