// The choice of the next token from a model's logits.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <random>

namespace sailor {

struct SamplingOptions {
  double temperature = 1;  // logits are divided by it; 0 = always the most likely token
  int64_t top_k = 0;       // only the k most likely tokens; 0 = all
  double top_p = 1;        // only the most likely tokens that together have this probability at least
  uint64_t seed = 1;
};

// The same logits, options and random state give the same token everywhere. One thread at a time.
class Sampler {
 public:
  explicit Sampler(const SamplingOptions& options) : options_(options), random_(options.seed) {}
  // `logits` is 1-D, of any type.
  int64_t next(const at::Tensor& logits);

 private:
  const SamplingOptions options_;
  std::mt19937_64 random_;
};

}  // namespace sailor
