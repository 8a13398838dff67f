#include "trainer/parallel/gradient_noise.h"

#include <cstddef>
#include <numeric>

namespace sailor {

std::optional<GradientNoise> gradient_noise(const std::vector<double>& squares,
                                            const std::vector<int64_t>& sequences, double square) {
  if (squares.size() < 2) return std::nullopt;
  const auto all = static_cast<double>(std::accumulate(sequences.begin(), sequences.end(), int64_t{0}));
  double q = 0, sum = 0;
  for (std::size_t p = 0; p < squares.size(); ++p) {
    const double part = static_cast<double>(sequences[p]) / all;
    q += part * part;
    sum += squares[p];
  }
  return GradientNoise{(square - sum) / (1 - q), all * (sum - q * square) / (1 - q)};
}

}  // namespace sailor
