#include "trainer/model/generator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "planner/spec/model_family.h"
#include "tests/unit/planner/error_of.h"
#include "trainer/model/initial_values.h"
#include "trainer/model/registry.h"

namespace sailor {
namespace {

using ::testing::HasSubstr;

class RandomWeights : public WeightSource {
 public:
  void read(const ParameterSpec& parameter, int64_t first, at::Tensor rows) const override {
    const int64_t row = std::max<int64_t>(1, parameter.columns);
    rows.copy_(normal_values(3, parameter.name, first * row, rows.numel(), 0.1, 0.3, rows.scalar_type())
                   .view_as(rows));
  }
};

ModelSpec model_of_two_blocks() {
  ModelSpec model;
  set_family(model, "llama");
  model.layers = 2;
  model.hidden = 16;
  model.heads = 4;
  model.kv_heads = 2;
  model.feed_forward = 24;
  model.sequence = 20;
  model.vocabulary = 37;
  return model;
}

std::vector<int64_t> text_of(Generator& generator, const std::vector<int64_t>& prompt,
                             const GenerationLimits& limits) {
  std::vector<int64_t> tokens;
  generator.generate(prompt, {.temperature = 0}, limits, [&](int64_t token) { tokens.push_back(token); });
  return tokens;
}

// As by computing the whole text again for every token.
std::vector<int64_t> expected_text(std::vector<int64_t> tokens, int count) {
  const RandomWeights weights;
  LayerContext context;
  context.model = model_of_two_blocks();
  context.padded_vocabulary = context.model.vocabulary;
  context.dtype = at::kDouble;
  context.weights = &weights;
  std::vector<int64_t> text;
  for (int n = 0; n < count; ++n) {
    const at::Tensor inputs = at::tensor(tokens, at::kLong).unsqueeze(0);
    at::Tensor x;
    for (int i = 0; i <= context.model.layers; ++i)
      x = build_layer(context, i)->forward(x, {.inputs = inputs});
    const at::Tensor logits = build_layer(context, context.model.layers + 1)->logits(x);
    text.push_back(logits[0][-1].argmax().item<int64_t>());
    tokens.push_back(text.back());
  }
  return text;
}

TEST(Generator, ContinuesAPromptUntilALimit) {
  const RandomWeights weights;
  Generator generator(model_of_two_blocks(), at::kDouble, weights);
  const std::vector<int64_t> prompt = {5, 9, 30, 2};
  const std::vector<int64_t> expected = expected_text(prompt, 16);
  EXPECT_EQ(text_of(generator, prompt, {.tokens = 5, .end_with = {}}),
            std::vector<int64_t>(expected.begin(), expected.begin() + 5));
  EXPECT_EQ(text_of(generator, prompt, {.tokens = 1000, .end_with = {}}), expected)
      << "the model's sequence is 20 tokens";
  const auto end = std::find(expected.begin(), expected.end(), expected[9]);
  EXPECT_EQ(text_of(generator, prompt, {.tokens = 1000, .end_with = {expected[9]}}),
            std::vector<int64_t>(expected.begin(), end));
}

TEST(Generator, APromptThatDoesNotFitIsAnError) {
  const RandomWeights weights;
  Generator generator(model_of_two_blocks(), at::kDouble, weights);
  const auto error = [&](const std::vector<int64_t>& prompt) {
    return test::error_of([&] { text_of(generator, prompt, {.tokens = 1, .end_with = {}}); });
  };
  EXPECT_THAT(error({}), HasSubstr("the prompt has no tokens"));
  EXPECT_THAT(error(std::vector<int64_t>(20, 1)),
              HasSubstr("the prompt has 20 tokens; the model's sequences have 20"));
  EXPECT_THAT(error({1, 37}), HasSubstr("token 37, and the model's vocabulary 37 tokens"));
  EXPECT_THAT(error({-1}), HasSubstr("vocabulary"));
}

}  // namespace
}  // namespace sailor
