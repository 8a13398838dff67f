#include "planner/simulator/run_prediction.h"

#include <gmock/gmock.h>

#include "tests/unit/planner/error_of.h"

namespace sailor {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// One type, one platform and one framework, all made up.
Assumptions assumptions() {
  Assumptions a;
  a.catalog = parse_catalog(
      "sailor_catalog: 1\ngpu_types:\n"
      "  A: {memory: 80GiB, peak_flops: {bf16: 300e12}, memory_bandwidth: 2000GB/s, compute_units: 100}\n",
      "catalog.yaml");
  a.platforms["p"] = parse_platform(
      "sailor_platform: 1\nname: p\ngpus_per_node: 4\nbase_memory_bytes: 1e9\niteration_overhead_s: "
      "0.5\nlinks:\n"
      "  - {name: inside, scope: intra_node, latency_s: 1e-6, bytes_per_s: 200e9}\n"
      "  - {name: network, scope: inter_node, latency_s: 1e-5, bytes_per_s: 10e9}\n",
      "p.yaml");
  a.frameworks["f"] = parse_framework_style("sailor_framework: 1\nname: f\nsync_buffer: false\n", "f.yaml");
  return a;
}

MeasuredRun predicted_record() {
  MeasuredRun r;
  r.name = "one";
  r.where = {"runs.jsonl", 3};
  r.framework = "f";
  r.platform = "p";
  r.model = r.plan.model = "m";
  r.shape.layers = 4;
  r.shape.hidden = 1024;
  r.shape.heads = r.shape.kv_heads = 16;
  r.shape.head_width = 64;
  r.shape.feed_forward = 4096;
  r.shape.sequence = 1024;
  r.shape.vocabulary = 50304;
  r.plan.global_batch = 8;
  r.plan.microbatch = 2;
  PlanStage first;
  first.end_layer = 3;
  first.gpu_type = "A";
  first.zone = "z";
  first.node = "0";
  PlanStage second = first;
  second.first_layer = 3;
  second.end_layer = 6;
  r.plan.pipelines = {{4, {first, second}}};
  return r;
}

TEST(PlanOutlook, ARunGoesTheWayOfEveryPlan) {
  const Assumptions a = assumptions();
  const MeasuredRun r = predicted_record();
  const Prediction p = predict_run(r, a);
  ASSERT_EQ(p.stages.size(), 2u);
  EXPECT_EQ(p.overhead_s, 0.5);
  EXPECT_EQ(p.stages[0].memory.base_bytes, 1'000'000'000);
  EXPECT_EQ(p.stages[0].capacity_bytes, int64_t{80} << 30);
  const FrameworkStyle style = style_of(r, a);
  const LayerProfile::Cell cell = analytic_times(
      {r.shape, style, kernel_model(a.catalog.at("A"), Precision::bf16), {}, Precision::bf16, 2, {}, 0});
  EXPECT_NEAR(p.stages[0].forward_s, cell[0].forward_s + 2 * cell[1].forward_s, 1e-12);
  EXPECT_NEAR(p.stages[1].backward_s, 2 * cell[1].backward_s + cell[5].backward_s, 1e-12);
  EXPECT_NEAR(p.stages[0].send_forward_s, 1e-6 + 2.0 * 2 * 1024 * 1024 / 200e9, 1e-12);
  EXPECT_EQ(p.stages[0].memory.weights_bytes,
            2 * (r.shape.embedding_parameters() + 2 * r.shape.block_parameters()));
}

TEST(PlanOutlook, OptionsOfARunChangeItsFramework) {
  MeasuredRun r = predicted_record();
  const Prediction before = predict_run(r, assumptions());
  r.options["gradient_bytes"] = "4";
  EXPECT_EQ(style_of(r, assumptions()).gradient_bytes, 4);
  EXPECT_EQ(predict_run(r, assumptions()).stages[0].memory.gradients_bytes,
            2 * before.stages[0].memory.gradients_bytes);
}

TEST(PlanOutlook, MeasuredTimesSizesAndLinksGoBeforeEstimates) {
  const Assumptions a = assumptions();
  MeasuredRun r = predicted_record();
  ProfileSet measured;
  measured.layers["A"].cells[{2, {1}}] = LayerProfile::Cell(6, {0.01, 0.02, 0, 0});
  LayerSizes sizes;
  sizes.parameters = 100;
  sizes.output_elements = 1000;
  measured.sizes.by_shape[{1}] = std::vector<LayerSizes>(6, sizes);
  measured.network.add(
      {{"", "", 0}, {"", "", 0}, NetworkProfile::Scope::any, LinkCurve::from_rates(0.001, 1e9, 0)});
  const Prediction p = predict_run(r, a, &measured);
  EXPECT_NEAR(p.stages[0].forward_s, 0.03, 1e-12);
  EXPECT_NEAR(p.stages[0].send_forward_s, 0.001 + 4000 / 1e9, 1e-12);
  EXPECT_EQ(p.stages[0].memory.weights_bytes, 300 * 2);
  // What the platform adds is the platform's.
  EXPECT_EQ(p.overhead_s, 0.5);
  // Another microbatch was not measured: it is estimated.
  r.plan.microbatch = 1;
  r.plan.pipelines[0].microbatches = 8;
  EXPECT_NE(predict_run(r, a, &measured).stages[0].forward_s, p.stages[0].forward_s);
  EXPECT_EQ(measured.layers["A"].cells.size(), 1u);
}

TEST(PlanOutlook, ATpGroupWithoutALinkIsAnErrorAndNotFree) {
  Assumptions a = assumptions();
  MeasuredRun r = predicted_record();
  r.plan.pipelines = {{4, {r.plan.pipelines[0].stages[0]}}};
  r.plan.pipelines[0].stages[0].end_layer = 6;
  r.plan.pipelines[0].stages[0].shape.tp = 2;
  EXPECT_NO_THROW(predict_run(r, a));
  a.platforms["p"].links.clear();
  EXPECT_THROW(predict_run(r, a), InputError);
}

TEST(PlanOutlook, MemoryMayBeThatOfOneStage) {
  MeasuredRun r = predicted_record();
  const Prediction p = predict_run(r, assumptions());
  ASSERT_GT(p.stages[1].memory.total(), p.stages[0].memory.total());
  EXPECT_EQ(predicted_peak_bytes(r, p), p.stages[1].memory.total());
  r.memory_stage = 0;
  EXPECT_EQ(predicted_peak_bytes(r, p), p.stages[0].memory.total());
  r.memory_stage = -1;
  EXPECT_EQ(predicted_peak_bytes(r, p), p.stages[1].memory.total());
}

TEST(PlanOutlook, WhatIsNotKnownIsAnErrorThatNamesTheRun) {
  const auto error = [](const std::function<void(MeasuredRun&)>& change) {
    MeasuredRun r = predicted_record();
    change(r);
    return test::error_of([&] { predict_run(r, assumptions()); });
  };
  EXPECT_THAT(error([](MeasuredRun& r) { r.framework = "g"; }),
              StartsWith("runs.jsonl:3: unknown framework \"g\""));
  EXPECT_THAT(error([](MeasuredRun& r) { r.platform = "q"; }),
              StartsWith("runs.jsonl:3: unknown platform \"q\""));
  EXPECT_THAT(error([](MeasuredRun& r) { r.options["colour"] = "red"; }),
              StartsWith("runs.jsonl:3: options: unknown key \"colour\""));
  EXPECT_THAT(error([](MeasuredRun& r) { r.plan.pipelines[0].stages[0].gpu_type = "B"; }),
              HasSubstr("GPU type \"B\""));
  EXPECT_THAT(error([](MeasuredRun& r) { r.precision = Precision::fp32; }), HasSubstr("peak_flops.fp32"));
  // A schedule that does not exist: three chunks for two entries.
  EXPECT_THAT(error([](MeasuredRun& r) { r.plan.interleave = 3; }), StartsWith("runs.jsonl:3: "));
  EXPECT_THAT(error([](MeasuredRun& r) { r.plan.interleave = 2; }), StartsWith("runs.jsonl:3: "));
}

}  // namespace
}  // namespace sailor
