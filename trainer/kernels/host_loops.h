// How kernels run on processors: loops over ranges, one range a thread, compiled for the vectors of any
// processor and for wider ones. Only for the .cpp files of this module, which are compiled without fused
// operations (CMakeLists.txt): results are the same on every processor.
#pragma once

#include <algorithm>
#include <cstdint>

#if defined(_OPENMP)
#include <omp.h>
#endif

#include "trainer/kernels/element.h"

namespace sailor::kernels {

// Calls work(begin, end) for parts of [0, count), each of at least `grain` where there are several, in as
// many threads as libtorch uses.
template <class Work>
void for_ranges(int64_t count, [[maybe_unused]] int64_t grain, const Work& work) {
  if (count <= 0) return;
#if defined(_OPENMP)
  const int64_t parts = std::min<int64_t>(omp_get_max_threads(), (count + grain - 1) / grain);
  if (parts > 1 && !omp_in_parallel()) {
#pragma omp parallel num_threads(static_cast <int>(parts))
    {
      const int64_t i = omp_get_thread_num(), all = omp_get_num_threads();
      work(count * i / all, count * (i + 1) / all);
    }
    return;
  }
#endif
  work(int64_t{0}, count);
}

#if defined(__x86_64__)
template <class Work>
[[gnu::target("avx2"), gnu::flatten]] void run_wide(const Work& work) {
  work();
}
inline bool has_wide_vectors() {
  static const bool has = __builtin_cpu_supports("avx2") != 0;
  return has;
}
#endif

// Calls work() compiled for the processor's vectors.
template <class Work>
void vectorised(const Work& work) {
#if defined(__x86_64__)
  if (has_wide_vectors()) return run_wide(work);
#endif
  work();
}

// The sum of value(0) to value(count - 1), in an order that vectors can follow.
template <class R, class Value>
SAILOR_KERNEL R sum_of(int64_t count, const Value& value) {
  constexpr int64_t kLanes = 32;
  R lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t k = 0; k < kLanes; ++k) lanes[k] += value(i + k);
  }
  R sum = 0;
  for (; i < count; ++i) sum += value(i);
  for (int64_t half = kLanes / 2; half > 0; half /= 2) {
    for (int64_t k = 0; k < half; ++k) lanes[k] += lanes[k + half];
  }
  return sum + lanes[0];
}

}  // namespace sailor::kernels
