#include "trainer/record/model_flops.h"

#include <gtest/gtest.h>

#include "planner/spec/model_family.h"

namespace sailor {
namespace {

// nanoGPT's estimate_mfu for GPT-2 small: 6 N + 12 L H Q T with N without the position embedding.
TEST(ModelFlops, AreNanoGptsForGpt2) {
  ModelSpec model;
  model.family = "gpt2";
  model.layers = 12;
  model.hidden = 768;
  model.heads = 12;
  model.feed_forward = 3072;
  model.sequence = 1024;
  model.vocabulary = 50257;
  const double n = 124439808 - 1024 * 768, expected = 6 * n + 12.0 * 12 * 12 * 64 * 1024;
  EXPECT_NEAR(training_flops_per_token(shape_of(model)), expected, 1e-3 * expected);
}

TEST(ModelFlops, ThePeakIsThatOfEveryGpuOfThePlanOrNotKnown) {
  Catalog catalog;
  catalog.gpu_types["a"].peak_flops = {{"fp32", 10.0}};
  catalog.gpu_types["b"].peak_flops = {{"fp32", 4.0}, {"bf16", 9.0}};
  catalog.gpu_types["c"].emulation = Emulation{"a", 2};
  PlanStage a, b;
  a.gpu_type = "a";
  a.shape.tp = 2;
  b.gpu_type = "b";
  Plan plan;
  plan.pipelines = {{1, {a, b}}, {1, {b}}};
  EXPECT_EQ(peak_flops(plan, catalog, Precision::fp32), 28.0);
  EXPECT_EQ(peak_flops(plan, catalog, Precision::bf16), std::nullopt) << "nobody says what `a` does in bf16";
  plan.pipelines = {{1, {a, b, a, b}}};
  plan.interleave = 2;
  EXPECT_EQ(peak_flops(plan, catalog, Precision::fp32), 24.0) << "two groups of GPUs in four stages";
  plan.pipelines[0].stages[0].gpu_type = "c";
  EXPECT_EQ(peak_flops(plan, catalog, Precision::fp32), std::nullopt);
}

TEST(ModelFlops, AttentionInDocumentsCountsTheirLengths) {
  ModelSpec model;
  set_family(model, "llama");
  model.layers = 3;
  model.hidden = 32;
  model.heads = 4;
  model.feed_forward = 64;
  model.sequence = 20;
  model.vocabulary = 50;
  const double whole = training_flops_per_token(shape_of(model));
  EXPECT_EQ(training_flops_per_token(model, std::nullopt, {{20, 7}}), whole);
  // Three documents of 5 tokens and one of 10: 15 of 25 tokens attend to 5 instead of 20, 10 to 10.
  EXPECT_NEAR(training_flops_per_token(model, std::nullopt, {{5, 3}, {10, 1}}),
              whole - 12 * 3 * 32 * (0.6 * 15 + 0.4 * 10), 1e-6);
}

}  // namespace
}  // namespace sailor
