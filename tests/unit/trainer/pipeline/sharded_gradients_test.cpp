// ZeRO-2: gradients that are summed after every microbatch, on the ranks that update them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <map>
#include <numeric>
#include <optional>
#include <vector>

#include "tests/unit/trainer/comm/ranks.h"
#include "tests/unit/trainer/small_training.h"
#include "trainer/pipeline/rank_trainer.h"
#include "trainer/pipeline/tensor_cache.h"

namespace sailor {
namespace {

Plan plan_of_degree(const JobSpec& job, Zero zero, const std::vector<std::vector<int>>& pipelines,
                    const std::vector<int>& microbatches) {
  Plan plan = make_plan(job, /*microbatch=*/1, pipelines, microbatches);
  plan.zero = zero;
  return plan;
}

// By rank: losses and norms of some steps, and every element of the values.
std::vector<std::vector<double>> trained_with(const JobSpec& job, const Plan& plan,
                                              const char* plane = "thread") {
  const TokenData data = repeating_data(job);
  TestJob ranks(plane, num_ranks(plan));
  std::vector<std::vector<double>> all(static_cast<std::size_t>(num_ranks(plan)));
  ranks.run([&](CommFactory& factory) {
    std::vector<double>& mine = all[static_cast<std::size_t>(factory.rank())];
    RankTrainer trainer(job, plan, factory.rank(), factory, data);
    for (int i = 0; i < 3; ++i) {
      const StepResult result = trainer.step();
      mine.insert(mine.end(), {result.loss, result.grad_norm});
    }
    for (const Parameter* parameter : trainer.parameters()) {
      const at::Tensor flat = parameter->value.detach().to(at::kDouble).reshape({-1});
      mine.insert(mine.end(), flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel());
    }
  });
  return all;
}

// Unlike degrees, depths and shares; pipelines of one microbatch; chunks.
TEST(ShardedGradients, LeaveTheSameValues) {
  struct Shape {
    std::vector<std::vector<int>> pipelines;
    std::vector<int> microbatches;
    int interleave = 1;
  };
  const std::vector<Shape> shapes = {{{{2, 1}, {1}, {4}}, {4, 1, 3}},
                                     {{{1, 1, 1}, {2}}, {7, 1}},
                                     {{{1, 1, 1}, {2}}, {1, 7}},
                                     {{{3}, {2, 4}}, {5, 3}},
                                     {{{1, 2, 1, 2}, {2, 1, 2, 1}}, {6, 2}, 2}};
  for (const bool tied : {false, true}) {
    for (const Shape& shape : shapes) {
      const JobSpec job = job_in_fp64(tied);
      Plan plan = plan_of_degree(job, Zero::optimizer, shape.pipelines, shape.microbatches);
      plan.interleave = shape.interleave;
      plan.sequence_parallel = tied;
      const auto expected = trained_with(job, plan);
      plan.zero = Zero::gradients;
      const auto sharded = trained_with(job, plan);
      for (std::size_t rank = 0; rank < expected.size(); ++rank) {
        ASSERT_EQ(sharded[rank].size(), expected[rank].size());
        for (std::size_t i = 0; i < expected[rank].size(); ++i)
          ASSERT_NEAR(sharded[rank][i], expected[rank][i], 1e-12)
              << summary(plan) << ", rank " << rank << ", " << i;
      }
      if (tied) continue;
      EXPECT_EQ(trained_with(job, plan, "socket"), sharded) << "the same bits on every plane";
    }
  }
}

JobSpec deep_job_of_blocks() {
  JobSpec job = small_job("gpt2", /*layers=*/10, /*global_batch=*/8);
  job.model.hidden = 64;
  job.model.feed_forward = 256;
  job.training.optimizer.name = "sgd";  // no states
  return job;
}

// The most bytes of any rank for gradients; `all_tensors`, if it is not nullptr: of all ranks, for everything
// that lives between steps.
int64_t most_gradient_bytes(const Plan& plan, int64_t* all_tensors = nullptr) {
  const JobSpec job = deep_job_of_blocks();
  const TokenData data = repeating_data(job);
  const int size = num_ranks(plan);
  TestJob ranks("thread", size);
  std::barrier all(size);
  std::atomic<int64_t> most = 0;
  use_tensor_cache();
  release_cached_tensors();
  const int64_t before = tensor_cache_bytes();
  ranks.run([&](CommFactory& factory) {
    RankTrainer trainer(job, plan, factory.rank(), factory, data);
    all.arrive_and_wait();
    if (all_tensors && factory.rank() == 0) {
      release_cached_tensors();
      *all_tensors = tensor_cache_bytes() - before;
    }
    all.arrive_and_wait();
    std::map<int, int64_t> of_layer;
    int64_t updated = 0;
    for (const Parameter* parameter : trainer.parameters())
      of_layer[parameter->layer] += parameter->value.numel();
    for (const OptimizerSlice& slice : trainer.optimizer().slices()) updated += slice.count;
    std::vector<int64_t> layers;
    for (const auto& [layer, elements] : of_layer) layers.push_back(elements);
    std::sort(layers.rbegin(), layers.rend());
    const int64_t bytes = trainer.gradient_bytes();
    const int64_t held = size > 1 && plan.zero == Zero::gradients
                             ? updated + layers[0] + layers[1]
                             : std::accumulate(layers.begin(), layers.end(), int64_t{0});
    EXPECT_EQ(bytes, 4 * held);
    trainer.step();
    EXPECT_EQ(trainer.gradient_bytes(), bytes) << "a step needs no more";
    for (int64_t seen = most; seen < bytes && !most.compare_exchange_weak(seen, bytes);) {
    }
  });
  return most;
}

TEST(ShardedGradients, ARankHasItsPartAndTwoLayers) {
  const JobSpec job = deep_job_of_blocks();
  const auto replicas = [&](int number, Zero zero) {
    return plan_of_degree(job, zero, std::vector<std::vector<int>>(static_cast<std::size_t>(number), {1}),
                          std::vector<int>(static_cast<std::size_t>(number), 8 / number));
  };
  const int64_t whole = most_gradient_bytes(replicas(1, Zero::gradients));
  int64_t last = whole;
  for (const int number : {2, 4, 8}) {
    int64_t with_all = 0, with_parts = 0;
    EXPECT_EQ(most_gradient_bytes(replicas(number, Zero::optimizer), &with_all), whole);
    const int64_t part = most_gradient_bytes(replicas(number, Zero::gradients), &with_parts);
    EXPECT_LT(part, last);
    EXPECT_LT(part, whole / number + whole / 4) << "two of ten blocks and a part";
    EXPECT_NEAR(static_cast<double>(with_all - with_parts), static_cast<double>(number * (whole - part)),
                number * 16384.0)
        << "what is counted is what is freed";
    last = part;
  }
}

class PartsPacer : public Pacer {
 public:
  void part_computed(const PhaseWork& part, Clock::time_point) override {
    layers.push_back(part.first_layer);
  }
  std::vector<int> layers;
};

// Before a layer's gradients are summed, and so in every microbatch.
TEST(ShardedGradients, AnEmulatedDeviceIsPacedLayerByLayer) {
  const JobSpec job = small_job("gpt2", /*layers=*/1, /*global_batch=*/4);
  const Plan plan = plan_of_degree(job, Zero::gradients, {{1}, {1}}, {2, 2});
  const TokenData data = repeating_data(job);
  TestJob ranks("thread", 2);
  ranks.run([&](CommFactory& factory) {
    PartsPacer pacer;
    RankTrainer trainer(job, plan, factory.rank(), factory, data, &pacer);
    trainer.step();
    EXPECT_THAT(pacer.layers, ::testing::ElementsAre(2, 1, 0, 2, 1, 0));
  });
}

// Gradient noise comes from the microbatches, as if each were a pipeline.
TEST(ShardedGradients, TheirNoiseIsThatOfMicrobatches) {
  JobSpec job = small_job("gpt2", /*layers=*/2, /*global_batch=*/4);
  job.training.precision = Precision::fp64;
  job.metrics.gradient_statistics_every = 1;
  const TokenData data = repeating_data(job);
  const auto noise_of = [&](const Plan& plan) {
    std::optional<GradientNoise> noise;
    TestJob ranks("thread", num_ranks(plan));
    ranks.run([&](CommFactory& factory) {
      RankTrainer trainer(job, plan, factory.rank(), factory, data);
      const StepResult result = trainer.step();
      if (factory.rank() == 0) noise = result.noise;
    });
    return noise;
  };
  const auto expected = noise_of(plan_of_degree(job, Zero::none, {{1}, {1}, {1}, {1}}, {1, 1, 1, 1}));
  const auto noise = noise_of(plan_of_degree(job, Zero::gradients, {{2, 1}, {1}}, {3, 1}));
  ASSERT_TRUE(expected && noise);
  EXPECT_NEAR(noise->signal, expected->signal, 1e-12);
  EXPECT_NEAR(noise->noise, expected->noise, 1e-10);
  EXPECT_FALSE(noise_of(plan_of_degree(job, Zero::gradients, {{1}}, {4}))) << "of a single pipeline";
}

// Hybrid ZeRO: groups of two pipelines, with unlike TP degrees and shares, cut differently in each group.
TEST(ShardedGradients, GroupsOfPipelinesThatHaveCopiesLeaveTheSameValues) {
  for (const bool tied : {false, true}) {
    const JobSpec job = job_in_fp64(tied);
    for (const Zero zero : {Zero::optimizer, Zero::gradients, Zero::parameters}) {
      Plan plan = plan_of_degree(job, zero, {{2, 1}, {1, 1}, {1, 2}, {1, 1}}, {3, 1, 2, 2});
      for (const std::size_t p : {2, 3})
        plan.pipelines[p].stages[0].end_layer = plan.pipelines[p].stages[1].first_layer = 1;
      plan.zero_group = 2;
      const auto with_groups = trained_with(job, plan);
      EXPECT_EQ(trained_with(job, plan, "socket"), with_groups) << "the same bits on every plane";
      Plan whole = plan_of_degree(job, Zero::none, {{2, 1}, {1, 1}, {1, 2}, {1, 1}}, {3, 1, 2, 2});
      for (const std::size_t p : {2, 3})
        whole.pipelines[p].stages[0].end_layer = whole.pipelines[p].stages[1].first_layer = 1;
      const auto expected = trained_with(job, whole);
      for (std::size_t rank = 0; rank < expected.size(); ++rank) {
        // With ZeRO-3 values are gathered when a layer needs them: losses and norms are compared.
        const std::size_t compared = zero == Zero::parameters ? 6 : expected[rank].size();
        for (std::size_t i = 0; i < compared; ++i)
          ASSERT_NEAR(with_groups[rank][i], expected[rank][i], 1e-12)
              << summary(plan) << ", rank " << rank << ", " << i;
      }
    }
  }
}

// Half of what all ranks together have, instead of a quarter.
TEST(ShardedGradients, EachGroupOfPipelinesHasACopyOfTheStates) {
  const JobSpec job = small_job("gpt2", /*layers=*/2, /*global_batch=*/4);
  const TokenData data = repeating_data(job);
  for (const int group : {0, 2}) {
    Plan plan = plan_of_degree(job, Zero::gradients, {{1}, {1}, {1}, {1}}, {1, 1, 1, 1});
    plan.zero_group = group;
    std::vector<std::map<std::string, std::pair<int64_t, int64_t>>> slices(4);  // first element, count
    int64_t elements = 0;
    TestJob ranks("thread", 4);
    ranks.run([&](CommFactory& factory) {
      RankTrainer trainer(job, plan, factory.rank(), factory, data);
      for (const OptimizerSlice& slice : trainer.optimizer().slices())
        slices[static_cast<std::size_t>(factory.rank())][slice.name] = {slice.first, slice.count};
      if (factory.rank() == 0)
        for (const Parameter* parameter : trainer.parameters()) elements += parameter->value.numel();
    });
    const auto held = [&](std::size_t rank) {
      int64_t count = 0;
      for (const auto& [name, range] : slices[rank]) count += range.second;
      return count;
    };
    if (group == 0) {
      EXPECT_EQ(held(0) + held(1) + held(2) + held(3), elements);
      continue;
    }
    EXPECT_EQ(held(0) + held(1), elements);
    EXPECT_EQ(slices[0], slices[2]);
    EXPECT_EQ(slices[1], slices[3]);
  }
}

}  // namespace
}  // namespace sailor
