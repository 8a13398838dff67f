#include "planner/profile/analytic_profile.h"

#include <gtest/gtest.h>

#include <random>

namespace sailor {
namespace {

// The second generation's smallest model: 12 blocks of 768.
TransformerShape small() {
  TransformerShape shape;
  shape.layers = 12;
  shape.hidden = 768;
  shape.heads = shape.kv_heads = 12;
  shape.head_width = 64;
  shape.feed_forward = 3072;
  shape.sequence = 1024;
  shape.vocabulary = 50304;
  shape.tied_embeddings = true;
  return shape;
}

KernelModel analytic_gpu() {
  KernelModel k;
  k.peak_flops = 3e14;
  k.memory_bytes_per_s = 2e12;
  k.compute_units = 108;
  k.element_bytes = 2;
  return k;
}

// No element-wise work, so that only products are left.
FrameworkStyle products_only() {
  FrameworkStyle style;
  style.whole_forward_passes = style.whole_backward_passes = 0;
  style.split_forward_passes = style.split_backward_passes = 0;
  style.score_forward_passes = style.score_backward_passes = 0;
  style.logit_forward_passes = style.logit_backward_passes = 0;
  return style;
}

struct Case {
  TransformerShape shape = small();
  FrameworkStyle style = products_only();
  KernelModel kernels = analytic_gpu();
  HostTimes host;
  int microbatch = 4;
  Ring tp;
  double collective_start_s = 0;

  LayerProfile::Cell times() const {
    return analytic_times({shape, style, kernels, host, Precision::bf16, microbatch, tp, collective_start_s});
  }
  LayerTimes block() const { return times().at(1); }
};

TEST(AnalyticProfile, ABlockIsTheSumOfItsProducts) {
  const Case c;
  const KernelModel& k = c.kernels;
  const double t = 4 * 1024, h = 768, f = 3072;
  const double attention = k.fused_attention_s(2.0 * 4 * 12 * 1024 * 1024 * 64);
  const double forward = k.gemm_s(t, 3 * h, h) + k.gemm_s(t, h, h) + k.gemm_s(t, f, h) + k.gemm_s(t, h, f);
  EXPECT_NEAR(c.block().forward_s, forward + attention, 1e-15);
  double backward = 2.5 * attention;
  for (const auto& [to, from] : std::vector<std::pair<double, double>>{{3 * h, h}, {h, h}, {f, h}, {h, f}})
    backward += k.gemm_s(t, from, to) + k.gemm_s(from, to, t);
  EXPECT_NEAR(c.block().backward_s, backward, 1e-15);
  EXPECT_NEAR(c.block().attention_s, attention, 1e-15);
}

TEST(AnalyticProfile, EveryBlockIsAlikeAndTheEndsAreTheirOwn) {
  const Case c;
  const LayerProfile::Cell cell = c.times();
  ASSERT_EQ(cell.size(), 14u);
  EXPECT_EQ(cell.at(1).forward_s, cell.at(12).forward_s);
  // The projection to 50,304 logits.
  EXPECT_NEAR(cell.back().forward_s,
              c.kernels.gemm_s(4096, 50304, 768) + c.kernels.stream_s(2.0 * 2 * 4096 * 768), 1e-12);
  EXPECT_GT(cell.front().forward_s, 0);
  EXPECT_LT(cell.front().forward_s, cell.at(1).forward_s);
}

TEST(AnalyticProfile, UnfusedAttentionWritesItsScores) {
  Case c;
  const double fused = c.block().forward_s - c.block().attention_s;
  c.style.attention = FrameworkStyle::Attention::unfused;
  const KernelModel& k = c.kernels;
  const double products = k.gemm_s(1024, 1024, 64, 48) + k.gemm_s(1024, 64, 1024, 48);
  EXPECT_NEAR(c.block().attention_s, products, 1e-15);
  EXPECT_NEAR(c.block().forward_s, fused + products, 1e-15);
  c.style.score_forward_passes = 4.5;
  EXPECT_NEAR(c.block().attention_s, products + k.stream_s(4.5 * 2 * 48 * 1024 * 1024), 1e-15);
}

TEST(AnalyticProfile, TensorParallelismSplitsProductsAndWhatIsSplitButNotWhatIsWhole) {
  Case one, two;
  two.tp.ranks = 2;
  const KernelModel& k = one.kernels;
  const double t = 4 * 1024, h = 768, f = 3072 / 2.0;
  const double attention = one.block().attention_s / 2;
  EXPECT_NEAR(two.block().attention_s, attention, 1e-15);
  EXPECT_NEAR(
      two.block().forward_s,
      k.gemm_s(t, 3 * h / 2, h) + k.gemm_s(t, h, h / 2) + k.gemm_s(t, f, h) + k.gemm_s(t, h, f) + attention,
      1e-15);
  const double products = two.block().forward_s, pass = k.stream_s(2 * t * h);
  two.style.split_forward_passes = 10;
  EXPECT_NEAR(two.block().forward_s, products + 5 * pass, 1e-12);
  two.style.whole_forward_passes = 3;
  EXPECT_NEAR(two.block().forward_s, products + 8 * pass, 1e-12);
  // Sequence parallelism splits the rest too.
  two.style.sequence_parallel = true;
  EXPECT_NEAR(two.block().forward_s, products + 6.5 * pass, 1e-12);
}

TEST(AnalyticProfile, TensorParallelismPaysItsCollectives) {
  Case c;
  const LinkCurve link = LinkCurve::from_rates(1e-5, 1e11, 0);
  c.tp = {4, 1, 1, &link, nullptr};
  c.collective_start_s = 4e-5;
  c.style.collectives_per_pass = 0;
  const LayerTimes without = c.block();
  c.style.collectives_per_pass = 2;
  const double each = 4e-5 + ring_all_reduce_s(c.tp, 2.0 * 4096 * 768);
  EXPECT_NEAR(c.block().forward_s, without.forward_s + 2 * each, 1e-12);
  EXPECT_NEAR(c.block().backward_s, without.backward_s + 2 * each, 1e-12);
  // Gathering an input again, which only split tokens need, is half of an all-reduce.
  c.style.backward_extra_gathers = 2;
  EXPECT_NEAR(c.block().backward_s, without.backward_s + 2 * each, 1e-12);
  c.style.sequence_parallel = true;
  EXPECT_NEAR(c.block().backward_s, without.backward_s + 3 * each, 1e-12);
  EXPECT_NEAR(c.block().forward_s, without.forward_s + 2 * each, 1e-12);
}

TEST(AnalyticProfile, SplitTokensAreGatheredAndScatteredAtTheEnds) {
  Case c;
  const LinkCurve link = LinkCurve::from_rates(1e-5, 1e11, 0);
  c.tp = {4, 1, 1, &link, nullptr};
  const LayerProfile::Cell plain = c.times();
  c.style.sequence_parallel = true;
  c.style.backward_extra_gathers = 2;
  const LayerProfile::Cell split = c.times();
  const double half_s = ring_pass_s(c.tp, 2.0 * 4096 * 768);
  const auto passes_s = [&](double passes) { return c.kernels.stream_s(0.75 * passes * 2 * 4096 * 768); };
  // The embedding's sum is scattered, and its gradient gathered; three quarters of the passes are gone.
  EXPECT_NEAR(split.front().forward_s, plain.front().forward_s - half_s - passes_s(6.5), 1e-12);
  EXPECT_NEAR(split.front().backward_s, plain.front().backward_s + half_s - passes_s(5.5), 1e-12);
  // The head gathers its input, twice, and scatters the sum of the gradient.
  EXPECT_NEAR(split.back().forward_s, plain.back().forward_s + half_s - passes_s(2), 1e-12);
  EXPECT_NEAR(split.back().backward_s, plain.back().backward_s - half_s + half_s - passes_s(4), 1e-12);
}

TEST(AnalyticProfile, TheSlowerOfDeviceAndHostIsThePace) {
  Case c;
  const double device_s = c.block().forward_s;
  c.host.block_s = 100 * device_s;
  EXPECT_NEAR(c.block().forward_s / (100 * device_s), 1, 1e-6);
  c.host.block_s = device_s / 100;
  EXPECT_NEAR(c.block().forward_s / device_s, 1, 1e-6);
  c.host.block_s = device_s;
  EXPECT_GT(c.block().forward_s, device_s);
  EXPECT_LT(c.block().forward_s, 1.2 * device_s);
  const HostTimes host{1, 0.5, 0.25};
  EXPECT_DOUBLE_EQ(host.pass_s(1), 1);
  EXPECT_DOUBLE_EQ(host.pass_s(4), 1 + 0.5 + 3 * 0.25);
}

TEST(AnalyticProfile, GatedAndGroupedModelsHaveTheirOwnProducts) {
  Case c;
  const KernelModel& k = c.kernels;
  const double t = 4096, h = 768, f = 3072, plain = c.block().forward_s;
  c.shape.gated_mlp = true;
  EXPECT_NEAR(c.block().forward_s - plain, k.gemm_s(t, 2 * f, h) - k.gemm_s(t, f, h), 1e-15);
  c.shape.gated_mlp = false;
  c.shape.kv_heads = 4;
  EXPECT_NEAR(plain - c.block().forward_s, k.gemm_s(t, 3 * h, h) - k.gemm_s(t, h + 2 * h / 3, h), 1e-15);
}

TEST(AnalyticProfile, TheOptimizerPassesEveryParameterOnce) {
  Case c;
  c.style.optimizer_traffic_bytes = 30;
  const auto seconds = [&](double parameters) { return c.kernels.stream_s(30 * parameters); };
  const LayerProfile::Cell cell = c.times();
  EXPECT_NEAR(cell.at(1).update_s, seconds(12.0 * 768 * 768 + 13 * 768), 1e-15);
  EXPECT_NEAR(cell.front().update_s, seconds((50304.0 + 1024) * 768), 1e-12);
  EXPECT_EQ(cell.back().update_s, 0);  // tied
  c.tp.ranks = 2;
  EXPECT_NEAR(c.block().update_s, seconds(12.0 * 768 * 768 + 13 * 768) / 2, 1e-15);
}

TEST(AnalyticProfile, AFasterGpuNeverPredictsSlowerLayers) {
  std::mt19937_64 random(3);
  const auto up_to = [&](int most) { return 1 + static_cast<int>(random() % static_cast<unsigned>(most)); };
  for (int i = 0; i < 500; ++i) {
    Case c;
    c.style = FrameworkStyle();
    c.style.accumulate_bytes = 6;
    if (random() % 2) c.style.attention = FrameworkStyle::Attention::unfused;
    c.style.sequence_parallel = random() % 2;
    c.shape.heads = 8 * up_to(8);
    c.shape.kv_heads = random() % 2 ? 8 : c.shape.heads;
    c.shape.head_width = 8 * up_to(16);
    c.shape.hidden = c.shape.heads * c.shape.head_width;
    c.shape.feed_forward = 8 * up_to(2000);
    c.shape.sequence = 8 * up_to(512);
    c.shape.gated_mlp = random() % 2;
    c.microbatch = up_to(8);
    c.tp.ranks = 1 << (random() % 4);
    const LinkCurve link = LinkCurve::from_rates(1e-6, 1e10, 0), wider = LinkCurve::from_rates(1e-6, 2e10, 0);
    c.tp.intra = &link;
    c.kernels.compute_units = up_to(150);
    c.host.block_s = 1e-4 * up_to(20);
    const auto before = c.times();
    const auto check = [&](const Case& better, const char* what) {
      const auto after = better.times();
      for (size_t layer : {size_t{0}, size_t{1}, before.size() - 1}) {
        EXPECT_LE(after[layer].forward_s, before[layer].forward_s) << what << " " << i << " " << layer;
        EXPECT_LE(after[layer].backward_s, before[layer].backward_s) << what << " " << i << " " << layer;
        EXPECT_LE(after[layer].update_s, before[layer].update_s) << what << " " << i << " " << layer;
      }
    };
    Case better = c;
    better.kernels.peak_flops *= 1.01 * up_to(3);
    check(better, "peak");
    better = c;
    better.kernels.memory_bytes_per_s *= 1.01 * up_to(3);
    check(better, "memory bandwidth");
    better = c;
    better.host.block_s /= 2;
    check(better, "host");
    better = c;
    better.tp.intra = &wider;
    check(better, "link");
  }
}

// The published count (arXiv 2205.05198, equations 1 to 5): s b h (10 + 24 / t + 5 a s / (h t)) bytes per
// block, everything divided by t with sequence parallelism, and 2 s b h when only inputs are kept.
TEST(AnalyticProfile, ActivationsOfABlockAreThePublishedCount) {
  const TransformerShape shape = small();
  FrameworkStyle style;
  style.norm_bytes = 8;
  style.dropout_bytes = 2;
  style.attention = FrameworkStyle::Attention::unfused;
  style.score_bytes = 5;
  const double sh = 1024.0 * 768, scores = 5.0 * 12 * 1024 * 1024;
  for (int t : {1, 2, 4}) {
    style.sequence_parallel = false;
    LayerSizes block = analytic_sizes(shape, style, Precision::bf16, {t}).at(1);
    EXPECT_EQ(block.activation_bytes, sh * 10 + (sh * 24 + scores) / t);
    EXPECT_EQ(block.selective_bytes, sh * 10 + sh * 24 / t);
    EXPECT_EQ(block.checkpoint_bytes, 2 * sh);
    style.sequence_parallel = true;
    block = analytic_sizes(shape, style, Precision::bf16, {t}).at(1);
    EXPECT_EQ(block.activation_bytes, (sh * 34 + scores) / t);
    EXPECT_EQ(block.selective_bytes, sh * 34 / t);
    EXPECT_EQ(block.checkpoint_bytes, 2 * sh / t);
  }
  style.attention = FrameworkStyle::Attention::fused;
  EXPECT_EQ(analytic_sizes(shape, style, Precision::bf16, {1}).at(1).activation_bytes, sh * 34);
  EXPECT_EQ(analytic_sizes(shape, style, Precision::bf16, {1}).at(1).light_bytes, 0);
  // The results of two norms and of the activation function (4 h wide) not kept; nor what that one reads.
  style.recompute_parts = true;
  style.sequence_parallel = false;
  for (int t : {1, 2}) {
    const LayerSizes block = analytic_sizes(shape, style, Precision::bf16, {t}).at(1);
    EXPECT_EQ(block.light_bytes, block.activation_bytes - 4 * sh - 8 * sh / t);
    EXPECT_EQ(block.mlp_bytes, block.light_bytes - 8 * sh / t);
    EXPECT_EQ(block.pending_bytes, 0);
  }
  // Inputs of four products, and the gradients of their results: of the first and the third 3 h and 4 h wide.
  style.split_backward = true;
  for (int t : {1, 2}) {
    const int64_t whole = 2 * (2 + 2) * sh, split = 2 * (1 + 4 + 3 + 4) * sh;
    EXPECT_EQ(analytic_sizes(shape, style, Precision::bf16, {t}).at(1).pending_bytes, whole + split / t);
    EXPECT_EQ(analytic_sizes(shape, style, Precision::bf16, {t}).at(0).pending_bytes, 0);
    style.sequence_parallel = true;  // of inputs a rank keeps its share
    EXPECT_EQ(analytic_sizes(shape, style, Precision::bf16, {t}).at(1).pending_bytes,
              whole / 2 + whole / 2 / t + split / t);
    style.sequence_parallel = false;
  }
}

TEST(AnalyticProfile, RecomputationRepeatsTheNormsTheActivationFunctionAndTheFirstProduct) {
  Case c;
  const KernelModel& k = c.kernels;
  const double h = 768, tokens = 4 * 1024;
  const double light_s = k.stream_s(tokens * h * 2 * 2 * 2) + k.stream_s(tokens * 4 * h * 2 * 2);
  EXPECT_NEAR(c.block().light_s, light_s, 1e-15);
  EXPECT_NEAR(c.block().mlp_s, light_s + k.gemm_s(tokens, 4 * h, h), 1e-15);
  EXPECT_EQ(c.times().front().light_s, 0);
  EXPECT_EQ(c.times().back().mlp_s, 0);
}

TEST(AnalyticProfile, TheGradientsOfWeightsAreFourProductsOfABlocksBackward) {
  Case c;
  const KernelModel& k = c.kernels;
  const double h = 768, tokens = 4 * 1024;
  EXPECT_EQ(c.block().weight_s, 0);
  c.style.split_backward = true;
  EXPECT_NEAR(c.block().weight_s,
              k.gemm_s(h, 3 * h, tokens) + k.gemm_s(h, h, tokens) + k.gemm_s(h, 4 * h, tokens) +
                  k.gemm_s(4 * h, h, tokens),
              1e-12);
  EXPECT_LT(c.block().weight_s, c.block().backward_s / 2);
  EXPECT_EQ(c.times().front().weight_s + c.times().back().weight_s, 0);
}

TEST(AnalyticProfile, ActivationsGrowWithTheSizeOfAnElement) {
  FrameworkStyle style;
  style.attention = FrameworkStyle::Attention::unfused;
  const auto at = [&](Precision precision) { return analytic_sizes(small(), style, precision, {2}); };
  for (size_t layer : {size_t{0}, size_t{1}, size_t{13}}) {
    EXPECT_EQ(at(Precision::fp32).at(layer).activation_bytes,
              2 * at(Precision::bf16).at(layer).activation_bytes);
    EXPECT_EQ(at(Precision::fp32).at(layer).workspace_bytes,
              2 * at(Precision::bf16).at(layer).workspace_bytes);
    EXPECT_EQ(at(Precision::fp32).at(layer).parameters, at(Precision::bf16).at(layer).parameters);
  }
}

TEST(AnalyticProfile, ParametersPerGpuAreSplitButForNormsAndOutputBiases) {
  const int64_t h = 768;
  const auto parameters = [&](const TransformerShape& shape, int tp) {
    return analytic_sizes(shape, FrameworkStyle(), Precision::bf16, {tp}).at(1).parameters;
  };
  EXPECT_EQ(parameters(small(), 1), 12 * h * h + 13 * h);
  EXPECT_EQ(parameters(small(), 2), (12 * h * h + 7 * h) / 2 + 6 * h);
  EXPECT_EQ(parameters(small(), 4), (12 * h * h + 7 * h) / 4 + 6 * h);
  TransformerShape bare = small();
  bare.biases = false;
  EXPECT_EQ(parameters(bare, 4), 12 * h * h / 4 + 2 * h);
  bare.gated_mlp = true;
  bare.kv_heads = 4;
  // Queries and output h x h, keys and values h x h/3 each, three matrices h x 4h.
  EXPECT_EQ(parameters(bare, 1), 2 * h * h + 2 * h * h / 3 + 12 * h * h + 2 * h);
}

TEST(AnalyticProfile, TheEndsHoldTheEmbeddingAndItsCopy) {
  TransformerShape shape = small();
  FrameworkStyle style;
  const int64_t matrix = int64_t{50304} * 768;
  std::vector<LayerSizes> sizes = analytic_sizes(shape, style, Precision::bf16, {1});
  EXPECT_EQ(sizes.front().parameters, matrix + 1024 * 768);
  EXPECT_EQ(sizes.back().parameters, matrix + 2 * 768);
  EXPECT_EQ(sizes.back().tied_parameters, matrix);
  EXPECT_EQ(sizes.front().output_elements, 1024 * 768);
  EXPECT_EQ(sizes.at(5).output_elements, 1024 * 768);
  style.tied_head_copy = false;
  sizes = analytic_sizes(shape, style, Precision::bf16, {1});
  EXPECT_EQ(sizes.back().parameters, 2 * 768);
  EXPECT_EQ(sizes.back().tied_parameters, 0);
  shape.tied_embeddings = shape.biases = shape.learned_positions = false;
  sizes = analytic_sizes(shape, style, Precision::bf16, {2});
  EXPECT_EQ(sizes.front().parameters, matrix / 2);
  EXPECT_EQ(sizes.back().parameters, matrix / 2 + 768);
  EXPECT_EQ(sizes.back().tied_parameters, 0);
}

TEST(AnalyticProfile, LogitsAreTheHeadsWorkspace) {
  FrameworkStyle style;
  style.logit_bytes = 8;
  style.head_norm_bytes = 6;
  style.logit_leftover_bytes = 4;
  const LayerSizes head = analytic_sizes(small(), style, Precision::bf16, {2}).back();
  EXPECT_EQ(head.workspace_bytes, 1024 * (50304 / 2 * 8 + 768 * 6));
  EXPECT_EQ(head.persistent_bytes, 1024 * 50304 / 2 * 4);
}

TEST(AnalyticProfile, TheVocabularyIsPaddedToAMultipleThatGrowsWithTheDegree) {
  TransformerShape shape = small();
  shape.vocabulary = 50257;
  FrameworkStyle style;
  EXPECT_EQ(padded_vocabulary(shape, style, 1), 50257);
  EXPECT_EQ(padded_vocabulary(shape, style, 2), 50258);
  style.vocabulary_multiple = 128;
  EXPECT_EQ(padded_vocabulary(shape, style, 1), 50304);
  EXPECT_EQ(padded_vocabulary(shape, style, 8), 51200);
  shape.vocabulary = 51200;
  EXPECT_EQ(padded_vocabulary(shape, style, 8), 51200);
}

}  // namespace
}  // namespace sailor
