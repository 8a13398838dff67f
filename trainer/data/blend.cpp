#include "trainer/data/blend.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "trainer/data/permutation.h"

namespace sailor {

Blend::Blend(const std::vector<double>& weights, uint64_t seed) : seed_(seed) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<double> rests;  // what rounding down takes from each
  int64_t given = 0;
  for (const double weight : weights) {
    const double exact = weight / sum * static_cast<double>(kBlock);
    ends_.push_back(static_cast<int64_t>(std::floor(exact)));
    rests.push_back(exact - std::floor(exact));
    given += ends_.back();
  }
  for (; given < kBlock; ++given) {
    const auto most = std::max_element(rests.begin(), rests.end());
    *most = -1;
    ++ends_[static_cast<std::size_t>(most - rests.begin())];
  }
  std::partial_sum(ends_.begin(), ends_.end(), ends_.begin());
}

Blend::Place Blend::at(int64_t sample) const {
  if (ends_.size() == 1) return {0, sample};
  const int64_t block = sample / kBlock;
  const Permutation order(kBlock, seed_ * 0x9e3779b97f4a7c15u + static_cast<uint64_t>(block));
  const auto slot = static_cast<int64_t>(order(static_cast<uint64_t>(sample % kBlock)));
  const auto source =
      static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), slot) - ends_.begin());
  return {source, block * per_block(source) + slot - begin(source)};
}

}  // namespace sailor
