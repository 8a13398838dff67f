#include "trainer/optim/square_sum.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <vector>

namespace sailor {
namespace {

constexpr int64_t kBlock = 1 << 16;  // elements that one thread sums at a time

template <class T>
double block_sum(const T* values, int64_t count) {
  // One running sum would wait for itself at every element.
  constexpr int64_t kLanes = 32;
  std::array<double, kLanes> lanes{};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t k = 0; k < kLanes; ++k) {
      const auto x = static_cast<double>(values[i + k]);
      lanes[static_cast<size_t>(k)] += x * x;
    }
  }
  double sum = 0;
  for (; i < count; ++i) sum += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  for (const double lane : lanes) sum += lane;
  return sum;
}

}  // namespace

template <class T>
double square_sum(const T* values, int64_t count) {
  if (count <= kBlock) return block_sum(values, count);
  std::vector<double> sums(static_cast<std::size_t>((count + kBlock - 1) / kBlock));
  at::parallel_for(0, static_cast<int64_t>(sums.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      sums[static_cast<std::size_t>(i)] =
          block_sum(values + i * kBlock, std::min(kBlock, count - i * kBlock));
    }
  });
  double sum = 0;
  for (const double block : sums) sum += block;
  return sum;
}

double square_sum_by_operators(const std::vector<at::Tensor>& tensors) {
  if (tensors.empty()) return 0;
  const at::Tensor norms = at::stack(at::_foreach_norm(tensors, 2));
  return norms.to(at::kDouble).square().sum().item<double>();
}

double square_sum(const std::vector<at::Tensor>& tensors) {
  if (!tensors.empty() && !tensors.front().device().is_cpu()) return square_sum_by_operators(tensors);
  double sum = 0;
  for (const at::Tensor& tensor : tensors) {
    sum += tensor.scalar_type() == at::kDouble ? square_sum(tensor.data_ptr<double>(), tensor.numel())
                                               : square_sum(tensor.data_ptr<float>(), tensor.numel());
  }
  return sum;
}

template double square_sum(const float*, int64_t);
template double square_sum(const double*, int64_t);

}  // namespace sailor
