// Which source each sample of a training run comes from, when several are blended.
//
// Samples are divided into blocks of kBlock. In every block each source has the same number of samples, its
// share of the weights, in an order drawn from (seed, block); so the place of a sample needs no state, and
// every source is read sample by sample without gaps. Immutable; thread-safe.
#pragma once

#include <cstdint>
#include <vector>

namespace sailor {

class Blend {
 public:
  static constexpr int64_t kBlock = 1 << 16;

  struct Place {
    std::size_t source;
    int64_t sample;  // of this source
  };

  // Requires weights > 0, at least one.
  Blend(const std::vector<double>& weights, uint64_t seed);

  Place at(int64_t sample) const;
  // Samples of a source in a block, rounded so that all together are kBlock; 0 for a very small weight.
  int64_t per_block(std::size_t source) const { return ends_[source] - begin(source); }

 private:
  int64_t begin(std::size_t source) const { return source == 0 ? 0 : ends_[source - 1]; }

  uint64_t seed_;
  std::vector<int64_t> ends_;  // of each source's samples in a block before it is reordered
};

}  // namespace sailor
