#include "planner/profile/split_tokens.h"

#include <gtest/gtest.h>

#include "planner/profile/analytic_profile.h"
#include "planner/spec/model_family.h"

namespace sailor {
namespace {

const LinkCurve& split_link() {
  static const LinkCurve link = LinkCurve::from_rates(0, 1e9, 0);
  return link;
}

GpuType split_type(bool described) {
  GpuType type;
  type.name = "A";
  if (described) {
    type.peak_flops["bf16"] = 3e14;
    type.memory_bandwidth_bytes_per_s = 2e12;
    type.compute_units = 108;
  }
  return type;
}

JobSpec split_job() {
  JobSpec job;
  set_family(job.model, "llama");
  job.model.layers = 3;
  job.model.hidden = 1024;
  job.model.heads = job.model.kv_heads = 16;
  job.model.feed_forward = 4096;
  job.model.sequence = 2048;
  job.model.vocabulary = 32000;
  return job;
}

// On 4 ranks each holds 40 whole and 240 / 4 of what is split, in all 100; then 40 / 4 and 240 / 4.
TEST(SplitTokens, OfWhatEveryRankHoldsWholeAShareRemains) {
  LayerSizes of_four, alone;
  of_four.activation_bytes = 100;
  alone.activation_bytes = 280;
  of_four.checkpoint_bytes = alone.checkpoint_bytes = 80;      // whole
  of_four.workspace_bytes = 100, alone.workspace_bytes = 400;  // split
  of_four.parameters = alone.parameters = 7;                   // no activation
  of_four.output_elements = alone.output_elements = 1000;
  std::vector<LayerSizes> sizes = {of_four};
  split_tokens(sizes, {alone}, 4);
  EXPECT_EQ(sizes[0].activation_bytes, 70);
  EXPECT_EQ(sizes[0].checkpoint_bytes, 20);
  EXPECT_EQ(sizes[0].workspace_bytes, 100);
  EXPECT_EQ(sizes[0].selective_bytes, 0);  // still unknown
  EXPECT_EQ(sizes[0].parameters, 7);
  EXPECT_EQ(sizes[0].output_elements, 1000);
}

TEST(SplitTokens, SizesAreThoseOfAFrameworkThatAlwaysSplitsTokens) {
  const TransformerShape shape = shape_of(split_job().model);
  for (const Ranks ranks : {Ranks::processors, Ranks::gpus}) {
    FrameworkStyle style = own_framework(ranks);
    const std::vector<LayerSizes> alone = analytic_sizes(shape, style, Precision::bf16, {1});
    for (const int tp : {1, 2, 4, 8}) {
      std::vector<LayerSizes> sizes = analytic_sizes(shape, style, Precision::bf16, {tp});
      split_tokens(sizes, alone, tp);
      FrameworkStyle always = style;
      always.sequence_parallel = true;
      const std::vector<LayerSizes> expected = analytic_sizes(shape, always, Precision::bf16, {tp});
      for (size_t layer = 0; layer < sizes.size(); ++layer) {
        EXPECT_NEAR(sizes[layer].activation_bytes, expected[layer].activation_bytes, 2) << tp << " " << layer;
        EXPECT_NEAR(sizes[layer].checkpoint_bytes, expected[layer].checkpoint_bytes, 2) << tp << " " << layer;
        EXPECT_NEAR(sizes[layer].workspace_bytes, expected[layer].workspace_bytes, 2) << tp << " " << layer;
      }
    }
  }
}

// Also where the profile was measured: at half the estimated speed, say.
TEST(SplitTokens, TimesChangeAsTheEstimatesDo) {
  const JobSpec job = split_job();
  const GpuType type = split_type(true);
  const TransformerShape shape = shape_of(job.model);
  FrameworkStyle style = own_framework(Ranks::gpus), always = style;
  always.sequence_parallel = true;
  const auto times = [&](const FrameworkStyle& of) {
    return analytic_times({shape,
                           of,
                           kernel_model(type, Precision::bf16),
                           {},
                           Precision::bf16,
                           2,
                           Ring{4, 1, 1, &split_link(), nullptr},
                           0});
  };
  LayerProfile::Cell cell = times(style);
  for (LayerTimes& layer : cell) layer.forward_s *= 2, layer.backward_s *= 2;
  const LayerProfile::Cell plain = cell, expected = times(always);
  split_tokens(cell, {job, style, type, Precision::bf16, 2, 4, &split_link()});
  for (size_t layer = 0; layer < cell.size(); ++layer) {
    EXPECT_NEAR(cell[layer].forward_s, 2 * expected[layer].forward_s, 1e-12);
    EXPECT_NEAR(cell[layer].backward_s, 2 * expected[layer].backward_s, 1e-12);
    EXPECT_EQ(cell[layer].update_s, plain[layer].update_s);
  }
  // The sums are as long; a block gathers two inputs of 2 x 2048 x 1024 again, three quarters of them from
  // other ranks, and three quarters of ten passes over whole activations are gone.
  const double gather_s = 0.75 * 2 * 2 * 2048 * 1024 / 1e9;
  const double passes_s = kernel_model(type, Precision::bf16).stream_s(0.75 * 10 * 2 * 2 * 2048 * 1024);
  EXPECT_NEAR(expected[1].backward_s - plain[1].backward_s / 2, 2 * gather_s - passes_s, 1e-9);
}

TEST(SplitTokens, WithoutEstimatesBlocksGatherTheirInputsAgain) {
  const JobSpec job = split_job();
  GpuType type = split_type(false);
  const LayerProfile::Cell plain(5, LayerTimes{1, 2, 0.5, 0.1});
  const auto split = [&](const JobSpec& of) {
    LayerProfile::Cell cell = plain;
    split_tokens(cell, {of, own_framework(), type, Precision::fp32, 2, 2, &split_link()});
    return cell;
  };
  const double gather_s = 0.5 * 4 * 2 * 2048 * 1024 / 1e9;
  LayerProfile::Cell cell = split(job);
  for (size_t layer = 0; layer < cell.size(); ++layer) {
    EXPECT_EQ(cell[layer].forward_s, 1);
    EXPECT_NEAR(cell[layer].backward_s, layer == 0 || layer == 4 ? 2 : 2 + 2 * gather_s, 1e-12);
  }
  // Frozen weights need no inputs.
  JobSpec adapted = job;
  adapted.training.lora.emplace();
  EXPECT_EQ(split(adapted)[1].backward_s, 2);
  // An emulated device takes the times of its profile.
  type.emulation = Emulation{"cpu", 3};
  EXPECT_EQ(split(job)[1].backward_s, 2);
}

}  // namespace
}  // namespace sailor
