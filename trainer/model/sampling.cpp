#include "trainer/model/sampling.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace sailor {

int64_t Sampler::next(const at::Tensor& logits) {
  const at::Tensor exact = logits.to(at::kCPU, at::kDouble);
  if (options_.temperature == 0) return exact.argmax().item<int64_t>();
  const auto [sorted, tokens] = exact.div(options_.temperature).sort(/*stable=*/true, 0, /*descending=*/true);
  int64_t count = sorted.size(0);
  if (options_.top_k > 0) count = std::min(count, options_.top_k);
  const at::Tensor probabilities = sorted.narrow(0, 0, count).softmax(0);
  const double* const p = probabilities.data_ptr<double>();
  double kept = 0;
  int64_t end = 0;
  while (end < count && (end == 0 || kept < options_.top_p)) kept += p[end++];
  // The standard's distributions differ between libraries.
  double point = static_cast<double>(random_() >> 11) * 0x1.0p-53 * kept;
  int64_t chosen = 0;
  while (chosen + 1 < end && point >= p[chosen]) point -= p[chosen++];
  return tokens[chosen].item<int64_t>();
}

}  // namespace sailor
