#include "trainer/model/generator.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>

#include "planner/spec/error.h"
#include "trainer/model/key_value_cache.h"
#include "trainer/model/registry.h"

namespace sailor {

Generator::Generator(const ModelSpec& model, at::ScalarType type, const WeightSource& weights)
    : model_(model) {
  std::map<std::string, at::Tensor> shared;
  const LayerContext context{.model = model_,
                             .padded_vocabulary = model_.vocabulary,
                             .dtype = type,
                             .weights = &weights,
                             .shared = &shared};
  for (int i = 0; i < model_.num_all_layers(); ++i) layers_.push_back(build_layer(context, i));
}

at::Tensor Generator::last_logits(const std::vector<int64_t>& tokens, KeyValueCache& past) {
  Batch batch;
  batch.inputs = at::tensor(tokens, at::kLong).unsqueeze(0);
  batch.past = &past;
  at::Tensor x;
  for (std::size_t i = 0; i + 1 < layers_.size(); ++i) x = layers_[i]->forward(x, batch);
  past.advance(batch.inputs.size(1));
  return layers_.back()->logits(x.narrow(1, x.size(1) - 1, 1)).view({-1});
}

void Generator::generate(const std::vector<int64_t>& prompt, const SamplingOptions& sampling,
                         const GenerationLimits& limits, const std::function<void(int64_t)>& told) {
  const at::NoGradGuard no_graph;
  if (prompt.empty()) throw InputError("the prompt has no tokens: the model needs one to begin with");
  const auto length = static_cast<int64_t>(prompt.size());
  if (length >= model_.sequence)
    throw InputError(
        fmt::format("the prompt has {} tokens; the model's sequences have {}, and the text needs "
                    "some of them",
                    length, model_.sequence));
  const int64_t largest = *std::max_element(prompt.begin(), prompt.end());
  if (largest >= model_.vocabulary || *std::min_element(prompt.begin(), prompt.end()) < 0)
    throw InputError(
        fmt::format("the prompt has token {}, and the model's vocabulary {} tokens: the tokenizer "
                    "is that of another model",
                    largest, model_.vocabulary));
  const int64_t most = std::min(limits.tokens, model_.sequence - length);
  KeyValueCache past(length + most);
  Sampler sampler(sampling);
  std::vector<int64_t> next = prompt;
  for (int64_t i = 0; i < most; ++i) {
    const int64_t token = sampler.next(last_logits(next, past));
    if (limits.end_with.contains(token)) return;
    told(token);
    next = {token};
  }
}

}  // namespace sailor
