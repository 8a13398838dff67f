#include "trainer/model/lora.h"

#include <gtest/gtest.h>

#include "planner/spec/lora_parameters.h"
#include "tests/unit/planner/family_models.h"
#include "tests/unit/trainer/comm/ranks.h"
#include "trainer/model/registry.h"

namespace sailor {
namespace {

LayerContext adapted_context(const ModelSpec& model) {
  LayerContext context;
  context.model = model;
  context.padded_vocabulary = padded_vocabulary(model.vocabulary, {2});
  context.lora = LoraSpec{.r = 3, .alpha = 6, .target_modules = last_words(linear_modules(model))};
  return context;
}

void expect_adapters_as_listed(const LayerContext& context, int index, const std::string& label) {
  const std::vector<ParameterSpec> listed = adapter_parameters(context.model, *context.lora, index);
  const auto layer = build_layer(context, index);
  std::vector<Parameter> adapters;
  for (const Parameter& parameter : layer->parameters()) {
    EXPECT_NE(parameter.frozen, parameter.value.requires_grad()) << label << " " << parameter.name;
    if (!parameter.frozen) adapters.push_back(parameter);
  }
  ASSERT_EQ(adapters.size(), listed.size()) << label << ", layer " << index;
  for (std::size_t i = 0; i < listed.size(); ++i) {
    EXPECT_EQ(adapters[i].name, listed[i].name) << label;
    EXPECT_EQ(adapters[i].sharded, listed[i].sharded) << label << " " << listed[i].name;
    const std::vector<int64_t> shape = {listed[i].rows / (listed[i].sharded ? context.tp_size() : 1),
                                        listed[i].columns};
    EXPECT_EQ(adapters[i].value.sizes().vec(), shape) << label << " " << listed[i].name;
  }
}

TEST(Lora, LayersHaveTheAdaptersThatThePlannerLists) {
  for (const auto& [label, model] : test::models_of_all_families()) {
    const LayerContext context = adapted_context(model);
    for (int i = 0; i < model.num_all_layers(); ++i) expect_adapters_as_listed(context, i, label);
    TestJob job("thread", 2);
    job.run([&, &label = label](CommFactory& factory) {
      const auto group = factory.create("tp", all_ranks(2));
      LayerContext mine = context;
      mine.tp = group.get();
      for (int i = 0; i < mine.model.num_all_layers(); ++i)
        expect_adapters_as_listed(mine, i, label + ", two ranks");
    });
  }
}

// B starts from zero.
TEST(Lora, ANewAdapterChangesNothing) {
  for (const auto& [label, model] : test::models_of_all_families()) {
    LayerContext adapted = adapted_context(model), plain = adapted;
    plain.lora.reset();
    const at::Tensor ids = at::arange(model.sequence, at::kLong).unsqueeze(0) % model.vocabulary;
    at::Tensor with, without;
    for (int i = 0; i <= model.layers; ++i) {
      with = build_layer(adapted, i)->forward(with, {ids, ids});
      without = build_layer(plain, i)->forward(without, {ids, ids});
    }
    EXPECT_TRUE(with.detach().equal(without.detach())) << label;
  }
}

}  // namespace
}  // namespace sailor
