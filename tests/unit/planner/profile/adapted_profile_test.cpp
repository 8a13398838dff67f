#include "planner/profile/adapted_profile.h"

#include <gtest/gtest.h>

#include "planner/profile/analytic_profile.h"
#include "planner/simulator/memory.h"
#include "planner/spec/model_family.h"

namespace sailor {
namespace {

JobSpec adapted_job() {
  JobSpec job;
  set_family(job.model, "llama");
  job.model.layers = 3;
  job.model.hidden = 64;
  job.model.heads = 4;
  job.model.kv_heads = 2;
  job.model.feed_forward = 128;
  job.model.sequence = 32;
  job.model.vocabulary = 100;
  job.model.tied_embeddings = true;
  job.training.precision = Precision::bf16;
  job.training.lora = LoraSpec{.r = 2, .alpha = 2, .target_modules = {"q_proj", "down_proj"}};
  return job;
}

ModelSizes sizes_of(const JobSpec& job) {
  ModelSizes sizes;
  for (const int tp : {1, 2})
    sizes.by_shape[{tp}] = analytic_sizes(shape_of(job.model), own_framework(), job.training.precision, {tp});
  return sizes;
}

TEST(AdaptedProfile, ParametersAreFrozenAndAdaptersAreTrained) {
  const JobSpec job = adapted_job();
  const ModelSizes before = sizes_of(job);
  ModelSizes sizes = before;
  adapt(sizes, job, job.training.precision);
  for (const int tp : {1, 2}) {
    const auto &layers = *sizes.find({tp}), &full = *before.find({tp});
    for (std::size_t i = 0; i < layers.size(); ++i) {
      const bool block = i > 0 && i + 1 < layers.size();
      // q_proj: A [2, 64] on every GPU, B [64, 2] split; down_proj: A [128, 2] split, B [64, 2] on every GPU.
      EXPECT_EQ(layers[i].parameters, block ? 2 * 64 + 2 * 64 + (64 * 2 + 128 * 2) / tp : 0) << i;
      EXPECT_EQ(layers[i].frozen_parameters, full[i].parameters) << i;
      EXPECT_EQ(layers[i].tied_parameters, 0);
      EXPECT_EQ(layers[i].activation_bytes, full[i].activation_bytes + (block ? 2 * 2 * 32 * 2 : 0)) << i;
    }
    EXPECT_EQ(layers.back().tied_frozen_parameters, full.back().tied_parameters);
  }
}

TEST(AdaptedProfile, OnlyAdaptersHaveGradientsMomentsAndMasters) {
  const JobSpec job = adapted_job();
  ModelSizes sizes = sizes_of(job);
  adapt(sizes, job, job.training.precision);
  RankMemoryInput rank;
  rank.chunks.push_back({.layers = *sizes.find({1})});
  rank.both_ends = true;
  const FrameworkStyle& style = own_framework();
  const MemoryBreakdown memory = rank_memory(rank, style, Precision::bf16);
  const TransformerShape shape = shape_of(job.model);
  const int64_t padding = padded_vocabulary(shape, style, 1) - shape.vocabulary;
  const int64_t adapters = 3 * (2 * (64 + 64) + 2 * (128 + 64)),
                base = shape.parameters() + padding * shape.hidden;
  EXPECT_EQ(memory.frozen_bytes, 2 * base) << "the tied matrix counts once";
  EXPECT_EQ(memory.weights_bytes, 2 * (base + adapters));
  EXPECT_EQ(memory.master_bytes, 4 * adapters);
  EXPECT_EQ(memory.optimizer_bytes, 8 * adapters);
  EXPECT_EQ(memory.gradients_bytes,
            static_cast<int64_t>((style.gradient_bytes_at(Precision::bf16) + style.gradient_copy_bytes) *
                                 static_cast<double>(adapters)));
}

TEST(AdaptedProfile, BackwardHasNoGradientsOfFrozenWeights) {
  const JobSpec job = adapted_job();
  LayerProfile profile;
  profile.cells[{1, {1}}] = LayerProfile::Cell(5, LayerTimes{1, 2, 3, 0.5});
  adapt(profile, job);
  const LayerProfile::Cell& cell = *profile.find(1, {1});
  EXPECT_EQ(cell.front().backward_s, 0);
  EXPECT_EQ(cell.front().forward_s, 1);
  EXPECT_EQ(cell.back().backward_s, 1);
  const TransformerShape shape = shape_of(job.model);
  const double weights = static_cast<double>(shape.block_parameters()),
               adapters = 2 * (64 + 64) + 2 * (128 + 64), attention = 4 * 64 * 32;
  for (const std::size_t block : {1, 2, 3}) {
    EXPECT_DOUBLE_EQ(cell[block].forward_s,
                     (2 * weights + attention + 2 * adapters) / (2 * weights + attention));
    EXPECT_DOUBLE_EQ(cell[block].backward_s,
                     2 * (2 * weights + 2 * attention + 4 * adapters) / (4 * weights + 2 * attention));
    EXPECT_DOUBLE_EQ(cell[block].update_s, 3 * adapters / weights);
  }
  EXPECT_EQ(cell.back().update_s, 0);
}

}  // namespace
}  // namespace sailor
