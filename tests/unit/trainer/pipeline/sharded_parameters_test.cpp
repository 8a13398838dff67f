// ZeRO-3: parameters of which ranks have their slices, and gather layers in every microbatch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "planner/plan/rank_layout.h"
#include "planner/process/scratch_directory.h"
#include "tests/unit/trainer/comm/ranks.h"
#include "tests/unit/trainer/small_training.h"
#include "trainer/pipeline/rank_trainer.h"
#include "trainer/pipeline/tensor_cache.h"

namespace sailor {
namespace {

Plan plan_of_shape(const JobSpec& job, Zero zero, const std::vector<std::vector<int>>& pipelines,
                   const std::vector<int>& microbatches, int interleave = 1) {
  Plan plan = make_plan(job, /*microbatch=*/1, pipelines, microbatches);
  plan.zero = zero;
  plan.interleave = interleave;
  return plan;
}

// The numbers of a safetensors file of fp64.
std::vector<double> numbers_exported_to(const std::string& directory) {
  std::ifstream file(directory + "/model.safetensors", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof header);
  std::vector<double> numbers((bytes.size() - sizeof header - header) / sizeof(double));
  std::memcpy(numbers.data(), bytes.data() + sizeof header + header, numbers.size() * sizeof(double));
  return numbers;
}

struct TrainedModel {
  std::vector<double> losses;  // and norms, and losses of validation
  // Each element of the unsharded parameters, of the rank that updates it.
  std::map<std::string, std::map<int64_t, double>> values;
  std::vector<double> exported;
};

TrainedModel trained_in_parts(const JobSpec& job, const Plan& plan, const char* plane = "thread") {
  const TokenData data = repeating_data(job);
  const RankLayout layout(plan);
  const ScratchDirectory directory;
  TestJob ranks(plane, num_ranks(plan));
  TrainedModel trained;
  std::mutex mutex;
  ranks.run([&](CommFactory& factory) {
    RankTrainer trainer(job, plan, factory.rank(), factory, data);
    std::vector<double> losses;
    for (int i = 0; i < 3; ++i) {
      const StepResult result = trainer.step();
      losses.insert(losses.end(), {result.loss, result.grad_norm});
      losses.push_back(trainer.evaluate(data, 5));  // in some microbatches there is nothing
    }
    trainer.export_to(directory.path());
    const std::lock_guard lock(mutex);
    if (factory.rank() == 0) trained.losses = losses;
    std::map<std::string, const Parameter*> parameters;
    for (const Parameter* parameter : trainer.parameters()) parameters[parameter->name] = parameter;
    for (const OptimizerSlice& slice : trainer.optimizer().slices()) {
      const Parameter& of = *parameters.at(slice.name);
      const int part = layout.slots()[static_cast<std::size_t>(factory.rank())].tp_rank;
      const int64_t first = slice.first + (of.sharded ? part * of.value.numel() : 0);
      for (int64_t i = 0; i < slice.count; ++i) {
        const bool added =
            trained.values[slice.name].emplace(first + i, slice.value[i].item<double>()).second;
        EXPECT_TRUE(added || plan.pipelines.size() == 1)
            << slice.name << " " << first + i << " has two owners";
      }
    }
  });
  trained.exported = numbers_exported_to(directory.path());
  return trained;
}

void expect_all_near(const std::vector<double>& a, const std::vector<double>& b, const std::string& what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-12) << what << ", " << i;
}

// Unlike degrees and shares; pipelines of one microbatch; chunks.
TEST(ShardedParameters, LeaveTheSameValues) {
  struct Shape {
    std::vector<std::vector<int>> pipelines;
    std::vector<int> microbatches;
    int interleave = 1;
  };
  const std::vector<Shape> shapes = {{{{2}, {1}, {4}}, {4, 1, 3}},
                                     {{{1, 1, 1}, {2, 1, 1}}, {7, 1}},
                                     {{{1, 1, 1}, {1, 2, 3}}, {1, 7}},
                                     {{{3, 1}, {2, 4}}, {5, 3}},
                                     {{{1, 2, 1, 2}, {2, 1, 2, 1}}, {6, 2}, 2}};
  for (const bool tied : {false, true}) {
    for (const Shape& shape : shapes) {
      const JobSpec job = job_in_fp64(tied);
      Plan plan = plan_of_shape(job, Zero::optimizer, shape.pipelines, shape.microbatches, shape.interleave);
      plan.sequence_parallel = tied;
      const TrainedModel expected = trained_in_parts(job, plan);
      plan.zero = Zero::parameters;
      const TrainedModel sharded = trained_in_parts(job, plan);
      expect_all_near(sharded.losses, expected.losses, summary(plan));
      expect_all_near(sharded.exported, expected.exported, summary(plan));
      ASSERT_EQ(sharded.values.size(), expected.values.size());
      for (const auto& [name, elements] : expected.values) {
        const auto& ours = sharded.values.at(name);
        ASSERT_EQ(ours.size(), elements.size()) << name;
        for (const auto& [i, value] : elements) ASSERT_NEAR(ours.at(i), value, 1e-12) << name << " " << i;
      }
      if (tied) continue;
      const TrainedModel over_sockets = trained_in_parts(job, plan, "socket");
      EXPECT_EQ(over_sockets.losses, sharded.losses) << "the same bits on every plane";
      EXPECT_EQ(over_sockets.values, sharded.values);
    }
  }
}

// Master copies are of the initial values, which come a layer at a time.
TEST(ShardedParameters, TrainIn16BitsAsShardedGradientsDo) {
  for (const Precision precision : {Precision::bf16, Precision::fp16}) {
    JobSpec job = small_job("llama", /*layers=*/2, /*global_batch=*/8);
    job.training.precision = precision;
    job.training.ema.emplace();
    const auto losses = [&](Zero zero) {
      return trained_in_parts(job, plan_of_shape(job, zero, {{2, 1}, {2, 1}}, {5, 3})).losses;
    };
    const std::vector<double> expected = losses(Zero::gradients);
    const std::vector<double> sharded = losses(Zero::parameters);
    EXPECT_LT(expected[6], 0.99 * expected[0]) << "they train";
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(sharded[i], expected[i], 1e-3 * expected[i]) << to_string(precision) << ", " << i;
  }
}

// Bytes of all tensors of all ranks that live between steps.
int64_t tensor_bytes_between_steps(const JobSpec& job, const Plan& plan) {
  const TokenData data = repeating_data(job);
  const int size = num_ranks(plan);
  TestJob ranks("thread", size);
  std::barrier all(size);
  use_tensor_cache();
  release_cached_tensors();
  const int64_t before = tensor_cache_bytes();
  int64_t bytes = 0;
  ranks.run([&](CommFactory& factory) {
    RankTrainer trainer(job, plan, factory.rank(), factory, data);
    all.arrive_and_wait();
    if (factory.rank() == 0) {
      release_cached_tensors();
      bytes = tensor_cache_bytes() - before;
    }
    all.arrive_and_wait();
    trainer.step();
    all.arrive_and_wait();
    if (factory.rank() == 0) {
      release_cached_tensors();
      EXPECT_LE(tensor_cache_bytes() - before, bytes + size * 1024) << "a step leaves nothing behind";
    }
    all.arrive_and_wait();
  });
  return bytes;
}

TEST(ShardedParameters, ARankHasItsPartAndTwoLayers) {
  JobSpec job = small_job("gpt2", /*layers=*/10, /*global_batch=*/8);
  job.model.hidden = 64;
  job.model.feed_forward = 256;
  job.training.optimizer.name = "sgd";  // no states
  const int64_t block = 4 * (4 * 64 * 64 + 2 * 64 * 256);
  for (const int number : {2, 4, 8}) {
    const auto replicas = [&](Zero zero) {
      return plan_of_shape(job, zero, std::vector<std::vector<int>>(static_cast<std::size_t>(number), {1}),
                           std::vector<int>(static_cast<std::size_t>(number), 8 / number));
    };
    const int64_t saved = tensor_bytes_between_steps(job, replicas(Zero::gradients)) -
                          tensor_bytes_between_steps(job, replicas(Zero::parameters));
    // All ranks have one copy instead of one each, and two blocks.
    const int64_t expected = (number - 1) * 10 * block - 2 * number * block;
    EXPECT_NEAR(static_cast<double>(saved), static_cast<double>(expected), 0.1 * 10 * number * block)
        << number;
  }
}

class RangesPacer : public Pacer {
 public:
  void part_computed(const PhaseWork& part, Clock::time_point) override {
    ranges.emplace_back(part.first_layer, part.end_layer);
  }
  std::vector<std::pair<int, int>> ranges;
};

// Before the next layer is gathered, forward and backward.
TEST(ShardedParameters, AnEmulatedDeviceIsPacedLayerByLayer) {
  const JobSpec job = small_job("gpt2", /*layers=*/1, /*global_batch=*/2);
  const Plan plan = plan_of_shape(job, Zero::parameters, {{1}, {1}}, {1, 1});
  const TokenData data = repeating_data(job);
  TestJob ranks("thread", 2);
  ranks.run([&](CommFactory& factory) {
    RangesPacer pacer;
    RankTrainer trainer(job, plan, factory.rank(), factory, data, &pacer);
    trainer.step();
    using Ranges = std::vector<std::pair<int, int>>;
    EXPECT_EQ(pacer.ranges, (Ranges{{0, 1}, {0, 2}, {0, 3}, {2, 3}, {1, 3}, {0, 3}}));
  });
}

TEST(ShardedParameters, ASingleReplicaHasNothingToGather) {
  const JobSpec job = job_in_fp64(false);
  const TrainedModel whole = trained_in_parts(job, plan_of_shape(job, Zero::none, {{2, 1}}, {8}));
  const TrainedModel alone = trained_in_parts(job, plan_of_shape(job, Zero::parameters, {{2, 1}}, {8}));
  EXPECT_EQ(alone.losses, whole.losses);
  EXPECT_EQ(alone.values, whole.values);
}

}  // namespace
}  // namespace sailor
