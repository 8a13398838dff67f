// What the trainer builds is what the planner lists, for every registered family.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/spec/error.h"
#include "tests/unit/planner/error_of.h"
#include "tests/unit/planner/family_models.h"
#include "tests/unit/trainer/comm/ranks.h"
#include "trainer/model/key_value_cache.h"
#include "trainer/model/registry.h"

namespace sailor {
namespace {

using ::testing::HasSubstr;

// The parameters of a built layer, of `tp` ranks, against the planner's list for it, in order.
void expect_as_listed(const LayerContext& context, int index, const std::string& label) {
  const std::vector<ParameterSpec> listed = layer_parameters(context.model, index, context.padded_vocabulary);
  const auto layer = build_layer(context, index);
  const std::vector<Parameter>& built = layer->parameters();
  ASSERT_EQ(built.size(), listed.size()) << label << ", layer " << index;
  for (size_t i = 0; i < listed.size(); ++i) {
    const ParameterSpec& spec = listed[i];
    EXPECT_EQ(built[i].name, spec.name) << label;
    EXPECT_EQ(built[i].layer, spec.layer) << label << " " << spec.name;
    EXPECT_EQ(built[i].sharded, spec.sharded) << label << " " << spec.name;
    EXPECT_EQ(built[i].decay, spec.decay) << label << " " << spec.name;
    EXPECT_EQ(built[i].tied_copy, spec.tied_copy) << label << " " << spec.name;
    std::vector<int64_t> shape = {spec.rows / (spec.sharded ? context.tp_size() : 1)};
    if (spec.columns > 0) shape.push_back(spec.columns);
    EXPECT_EQ(built[i].value.sizes().vec(), shape) << label << " " << spec.name;
  }
}

TEST(ModelFamilies, LayersHaveTheParametersThatThePlannerLists) {
  for (const auto& [label, model] : test::models_of_all_families()) {
    LayerContext context;
    context.model = model;
    context.padded_vocabulary = padded_vocabulary(model.vocabulary, {2});
    for (int i = 0; i < model.num_all_layers(); ++i) expect_as_listed(context, i, label);
    TestJob job("thread", 2);
    job.run([&, &model = model, &label = label](CommFactory& factory) {
      const auto group = factory.create("tp", all_ranks(2));
      LayerContext mine = context;
      mine.tp = group.get();
      for (int i = 0; i < model.num_all_layers(); ++i) expect_as_listed(mine, i, label + ", two ranks");
    });
  }
}

// A token's logits depend on it and on those before it, and on nothing behind it.
TEST(ModelFamilies, NoTokenSeesThoseBehindIt) {
  for (const auto& [label, model] : test::models_of_all_families()) {
    LayerContext context;
    context.model = model;
    context.padded_vocabulary = model.vocabulary;
    context.dtype = at::kDouble;
    const at::Tensor ids = at::arange(model.sequence, at::kLong).unsqueeze(0) % model.vocabulary;
    at::Tensor other = ids.clone();
    other.select(1, 5).fill_(17);
    const auto logits = [&, &model = model](const at::Tensor& inputs) {
      at::Tensor x;
      for (int i = 0; i <= model.layers; ++i) x = build_layer(context, i)->forward(x, {inputs, inputs});
      return build_layer(context, model.layers + 1)->logits(x).detach();
    };
    const at::Tensor difference = (logits(ids) - logits(other)).abs().amax(2).squeeze(0);
    EXPECT_LT(difference.narrow(0, 0, 5).max().item<double>(), 1e-14) << label;
    EXPECT_GT(difference.narrow(0, 5, model.sequence - 5).min().item<double>(), 1e-9) << label;
  }
}

// Some at once, then one by one, then some after others.
TEST(ModelFamilies, TokensAfterThoseOfACacheHaveTheSameLogits) {
  for (const auto& [label, model] : test::models_of_all_families()) {
    LayerContext context;
    context.model = model;
    context.padded_vocabulary = model.vocabulary;
    context.dtype = at::kDouble;
    std::vector<std::unique_ptr<Layer>> layers;
    for (int i = 0; i < model.num_all_layers(); ++i) layers.push_back(build_layer(context, i));
    const auto logits = [&](const at::Tensor& inputs, KeyValueCache* past) {
      at::Tensor x;
      for (std::size_t i = 0; i + 1 < layers.size(); ++i)
        x = layers[i]->forward(x, {.inputs = inputs, .past = past});
      return layers.back()->logits(x).detach();
    };
    const at::Tensor ids = (at::arange(2 * model.sequence, at::kLong) * 7 % model.vocabulary).view({2, -1});
    const at::Tensor expected = logits(ids, nullptr);
    KeyValueCache past(model.sequence);
    for (const int64_t count : std::vector<int64_t>{model.sequence / 2, 1, 1, 3}) {
      const int64_t first = past.tokens();
      const at::Tensor got = logits(ids.narrow(1, first, count), &past);
      EXPECT_LT((got - expected.narrow(1, first, count)).abs().max().item<double>(), 1e-12)
          << label << ", " << count << " tokens after " << first;
      past.advance(count);
    }
    KeyValueCache small(2);
    EXPECT_THROW(logits(ids, &small), std::logic_error) << "more than its capacity";
  }
}

TEST(ModelFamilies, WhatCannotBeBuiltOrSplitIsAnError) {
  for (const ModelFamily& family : model_families()) {
    ModelSpec model = test::models_of(family).front().model;
    EXPECT_NO_THROW(check_split(model, 4)) << family.name;
    EXPECT_THAT(test::error_of([&] { check_split(model, 3); }),
                HasSubstr("model.heads: 4 cannot be split over 3 GPUs"));
    model.heads = 5;
    EXPECT_THAT(test::error_of([&] { check_split(model, 1); }),
                HasSubstr("model.heads: hidden (64) must be a multiple of heads (5)"));
    model.family = "nothing";
    EXPECT_THAT(test::error_of([&] { check_split(model, 1); }), HasSubstr("model.family: "));
  }
}

}  // namespace
}  // namespace sailor
