// A whole model in this process that continues sequences of tokens.
//
//     Generator generator(model, at::kFloat, weights);
//     generator.generate(prompt, {.temperature = 0.8}, limits, [&](int64_t token) { ... });
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <vector>

#include "trainer/model/layer.h"
#include "trainer/model/sampling.h"

namespace sailor {

struct GenerationLimits {
  int64_t tokens = 0;          // at most
  std::set<int64_t> end_with;  // one of these is the last; it is not part of the text
};

class Generator {
 public:
  // Parameters have `type`, and are read from `weights`. `model.sequence` is the number of tokens of the
  // longest text, the prompt included. Throws what building the layers throws.
  Generator(const ModelSpec& model, at::ScalarType type, const WeightSource& weights);

  // Calls `told` with every token that follows the prompt, but for the last one of `end_with`. Ends before
  // the text is longer than the model's sequence. Throws InputError for an empty prompt, one that is longer,
  // and tokens beyond the vocabulary.
  void generate(const std::vector<int64_t>& prompt, const SamplingOptions& sampling,
                const GenerationLimits& limits, const std::function<void(int64_t)>& told);

 private:
  at::Tensor last_logits(const std::vector<int64_t>& tokens, KeyValueCache& past);

  const ModelSpec model_;
  std::vector<std::unique_ptr<Layer>> layers_;
};

}  // namespace sailor
