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
  split_tokens(cell, {job, style, type, Precision::bf16, 2, {4}, &split_link()});
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
    split_tokens(cell, {of, own_framework(), type, Precision::fp32, 2, {2}, &split_link()});
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

// A quarter of what grows with the tokens, and room for two times the queries, keys and values of a quarter
// of 2048 tokens, 3 x 1024 elements each.
TEST(SplitContext, AQuarterOfTheTokensIsAQuarterOfTheMemory) {
  LayerSizes layer;
  layer.parameters = 7;
  layer.output_elements = 1000;
  layer.activation_bytes = 400;
  layer.light_bytes = 202;
  layer.workspace_bytes = 80;
  std::vector<LayerSizes> sizes(3, layer);
  split_context(sizes, split_job().model, Precision::bf16, {.tp = 1, .cp = 4});
  for (const LayerSizes& split : sizes) {
    EXPECT_EQ(split.parameters, 7);
    EXPECT_EQ(split.output_elements, 1000);
    EXPECT_EQ(split.activation_bytes, 100);
    EXPECT_EQ(split.light_bytes, 51);
    EXPECT_EQ(split.mlp_bytes, 0);  // still unknown
  }
  EXPECT_EQ(sizes[0].workspace_bytes, 20);
  EXPECT_EQ(sizes[1].workspace_bytes, 20 + 2 * 2 * 2048 * 3 * 1024 / 4);
}

// Microbatches of 1, 2 and 4 sequences take 3, 4 and 6 s: 2 s, and 1 s more for each.
TEST(SplitContext, AMicrobatchTakesAsLongAsItsPartOfTheSequences) {
  LayerProfile profile;
  for (const int size : {1, 2, 4}) profile.cells[{size, {2}}] = {3, LayerTimes{2.0 + size, 1.0 * size, 0.5}};
  const auto shared = [&](int microbatch, int cp) {
    LayerProfile::Cell cell = *profile.find(microbatch, {2});
    share_context(cell, profile, microbatch, {.tp = 2, .cp = cp});
    return cell[1];
  };
  EXPECT_DOUBLE_EQ(shared(4, 2).forward_s, 4);            // that of 2
  EXPECT_DOUBLE_EQ(shared(4, 3).forward_s, 2 + 4.0 / 3);  // between 1 and 2
  EXPECT_DOUBLE_EQ(shared(1, 4).forward_s, 2.25);
  EXPECT_DOUBLE_EQ(shared(1, 4).backward_s, 0.25);
  EXPECT_DOUBLE_EQ(shared(4, 4).update_s, 0.5);
  EXPECT_DOUBLE_EQ(shared(2, 1).forward_s, 4);
}

// Of 2 x 2048 tokens a rank of two has half; half of its 3 x 1024 elements of a token go to the other one,
// and half of the 1024 of a result come back. Emulated devices exchange them while they wait.
TEST(SplitContext, BlocksExchangeHeadsForTokens) {
  const JobSpec job = split_job();
  GpuType type = split_type(true);
  LayerProfile profile;
  profile.cells[{2, {1}}] = {3, LayerTimes{1, 2, 0.5}};
  const auto split = [&] {
    LayerProfile::Cell cell = *profile.find(2, {1});
    split_context(cell, profile,
                  {job, own_framework(), type, Precision::bf16, 2, {.tp = 1, .cp = 2}, &split_link()});
    return cell;
  };
  const double exchanges_s = 2 * 2048 * 0.5 * 0.5 * (3 + 1) * 1024 * 2 / 1e9;
  EXPECT_NEAR(split()[1].forward_s, 0.5 + exchanges_s, 1e-12);
  EXPECT_NEAR(split()[1].backward_s, 1 + exchanges_s, 1e-12);
  EXPECT_EQ(split()[0].forward_s, 0.5);
  EXPECT_EQ(split()[2].backward_s, 1);
  type.emulation.emplace();
  EXPECT_EQ(split()[1].forward_s, 0.5);
}

// One head of keys and values, 64 elements each, for two ranks of 2 x 2048 tokens: a message has those of
// half the tokens. Each rank computes its two equal steps while one is on its way; back travel two, and a
// last one.
TEST(SplitContext, RingsWaitForWhatTheirComputationDoesNotHide) {
  JobSpec job = split_job();
  job.model.kv_heads = 1;
  job.model.head_size = 64;
  job.model.heads = 16;
  const GpuType type = split_type(true);
  const auto added = [&](double pass_s) {
    LayerProfile profile;
    profile.cells[{2, {1}}] = {3, LayerTimes{pass_s, 2 * pass_s, 0.5}};
    LayerProfile::Cell cell = *profile.find(2, {1});
    const SplitTimes of{job, own_framework(), type, Precision::bf16, 2, {.tp = 1, .cp = 2}, &split_link()};
    split_context(cell, profile, of);
    return std::pair(cell[1].forward_s - pass_s / 2, cell[1].backward_s - pass_s);
  };
  const double exchanges_s = 2 * 2048 * 0.5 * 0.5 * (1024 + 128 + 1024) * 2 / 1e9;
  const double message_s = 2 * 2048 * 0.5 * 128 * 2 / 1e9;
  EXPECT_NEAR(added(0).first, exchanges_s + message_s, 1e-12);
  EXPECT_NEAR(added(0).second, exchanges_s + 3 * message_s, 1e-12);
  EXPECT_NEAR(added(10).first, exchanges_s, 1e-9) << "hidden";
  EXPECT_NEAR(added(10).second, exchanges_s + message_s, 1e-9);
}

TEST(SplitContext, RingsHoldKeysValuesAndTheirGradients) {
  LayerSizes layer;
  layer.workspace_bytes = 80;
  std::vector<LayerSizes> sizes(3, layer), whole = sizes;
  ModelSpec model = split_job().model;  // as many heads of keys and values as of queries
  split_context(whole, model, Precision::bf16, {.tp = 1, .cp = 4});
  model.qk_norm = QkNorm::projection;
  split_context(sizes, model, Precision::bf16, {.tp = 1, .cp = 4});
  EXPECT_EQ(sizes[1].workspace_bytes, 20 + (2048 / 4) * 1024 * (8 * 2 * 2 + 4 * (2 + 1)));
  EXPECT_GT(sizes[1].workspace_bytes, whole[1].workspace_bytes);
  EXPECT_EQ(sizes[0].workspace_bytes, 20);
}

}  // namespace
}  // namespace sailor
