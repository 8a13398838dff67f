// Whole training steps through the NCCL plane, with gradient reduction on its own stream and concurrent
// copies of the state: the same bits as on planes in host memory. Also the effects of a fault in the middle.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <thread>

#include "planner/plan/rank_layout.h"
#include "planner/process/scratch_directory.h"
#include "tests/fake_nccl/fault_script.h"
#include "tests/unit/device/fake_gpus.h"
#include "tests/unit/planner/family_models.h"
#include "tests/unit/trainer/small_training.h"
#include "trainer/kernels/traffic.h"
#include "trainer/model/torch_device.h"
#include "trainer/parallel/stage_link.h"
#include "trainer/pipeline/rank_trainer.h"

namespace sailor {
namespace {

using namespace std::chrono_literals;
using fake::Fault;

enum class On { host, device };

// What every rank has after some steps.
using Numbers = std::vector<std::vector<double>>;

std::vector<double> numbers_of(RankTrainer& trainer) {
  std::vector<double> numbers;
  for (const Parameter* parameter : trainer.parameters()) {
    const at::Tensor flat = parameter->value.detach().to(at::kDouble).reshape({-1});
    for (int64_t i = 0; i < flat.numel(); i += 7) numbers.push_back(flat[i].item<double>());
  }
  return numbers;
}

Numbers trained(const JobSpec& job, const Plan& plan, On on, int steps = 4,
                const std::string& below = "thread") {
  const TokenData data = repeating_data(job);
  const CommOptions options{20s};
  TestJob ranks(below, num_ranks(plan), options);
  Numbers all(static_cast<std::size_t>(num_ranks(plan)));
  ranks.run([&](CommFactory& factory) {
    std::optional<FakeGpu> gpu;
    std::optional<DevicePlane> plane;
    if (on == On::device) plane.emplace(gpu.emplace(factory, options).plane());
    RankTrainer trainer(job, plan, factory.rank(), factory, data, nullptr, plane ? &*plane : nullptr);
    std::vector<double> mine;
    for (int i = 0; i < steps; ++i) {
      const StepResult result = trainer.step();
      mine.insert(mine.end(), {result.loss, result.grad_norm, static_cast<double>(result.data_digest)});
    }
    mine.push_back(trainer.evaluate(data, 5));
    for (const double number : numbers_of(trainer)) mine.push_back(number);
    all[static_cast<std::size_t>(factory.rank())] = mine;
  });
  EXPECT_THAT(fake::take_violations(), ::testing::IsEmpty());
  return all;
}

JobSpec deep_job(const std::string& family = "gpt2") {
  JobSpec job = scheduled_job(family, /*steps=*/4);
  job.model.layers = 6;
  return job;
}

// Stages, TP groups and replicas, two of each.
Plan two_by_two_by_two(const JobSpec& job) {
  return make_plan(job, /*microbatch=*/2, {{2, 2}, {2, 2}}, {2, 2});
}

TEST(DeviceTrainer, TrainsAsOnProcessors) {
  for (const ModelFamily& family : model_families()) {
    JobSpec job = deep_job();
    job.model = test::models_of(family).front().model;
    job.model.layers = 6;
    const Plan plan = two_by_two_by_two(job);
    EXPECT_EQ(trained(job, plan, On::device), trained(job, plan, On::host)) << family.name;
  }
}

// As cuBLAS on a GPU: what a product of a new size needs is loaded when it is first used, for which CUDA
// waits for all that runs on the device.
class LoadsProductsAtFirstUse : public kernels::TrafficRecorder {
 public:
  explicit LoadsProductsAtFirstUse(int device) : device_(device) { kernels::recorder_of_thread = this; }
  ~LoadsProductsAtFirstUse() override { kernels::recorder_of_thread = nullptr; }
  void begin(const char* kernel, int64_t bytes, int) override {
    const bool product = std::string(kernel).ends_with("matrix product");
    if (product && loaded_.emplace(kernel, bytes).second) fake::load_code(device_);
  }
  void end() override {}
  std::size_t loaded() const { return loaded_.size(); }

 private:
  const int device_;
  std::set<std::pair<std::string, int64_t>> loaded_;
};

TEST(DeviceTrainer, LoadsProductsBeforeItsFirstMessage) {
  JobSpec job = deep_job();
  Plan interleaved = make_plan(job, /*microbatch=*/2, {{1, 1, 1, 1, 1, 1}}, {2});
  interleaved.interleave = 3;
  Plan sharded = make_plan(job, /*microbatch=*/2, {{1, 1}, {2, 1}}, {3, 1});
  sharded.zero = Zero::gradients;
  Plan gathered = make_plan(job, /*microbatch=*/2, {{1, 1}, {2, 1}}, {3, 1});
  gathered.zero = Zero::parameters;
  for (Plan plan : {make_plan(job, /*microbatch=*/2, {{1, 1}}, {4}), interleaved, sharded, gathered}) {
    int microbatches = 0;
    for (const PlanPipeline& pipeline : plan.pipelines) microbatches += pipeline.microbatches;
    plan.global_batch = job.training.global_batch = 2 * microbatches - 1;  // the last one is smaller
    const TokenData data = repeating_data(job);
    const CommOptions options{20s};
    TestJob ranks("thread", num_ranks(plan), options);
    ranks.run([&](CommFactory& factory) {
      FakeGpu gpu(factory, options);
      const DevicePlane plane = gpu.plane();
      LoadsProductsAtFirstUse library(device_of(factory.rank()));
      RankTrainer trainer(job, plan, factory.rank(), factory, data, nullptr, &plane);
      trainer.step();
      EXPECT_GT(library.loaded(), 3U);
      trainer.evaluate(data, 3);
    });
    EXPECT_THAT(fake::take_violations(), ::testing::IsEmpty());
  }
}

TEST(DeviceTrainer, DocumentsAndAnswersAsOnProcessors) {
  for (const char* family : {"gpt2", "llama"}) {
    JobSpec job = deep_job(family);
    const Plan plan = two_by_two_by_two(job);
    const Numbers whole = trained(job, plan, On::host);
    job.data.document_mask = true;
    const Numbers masked = trained(job, plan, On::host);
    EXPECT_EQ(trained(job, plan, On::device), masked) << family;
    job.training.task = Task::sft;
    const Numbers tuned = trained(job, plan, On::host);
    EXPECT_EQ(trained(job, plan, On::device), tuned) << family;
    EXPECT_NE(whole, masked);
    EXPECT_NE(masked, tuned);
  }
}

TEST(DeviceTrainer, TrainsAsOnProcessorsOverSockets) {
  const JobSpec job = deep_job();
  const Plan plan = two_by_two_by_two(job);
  EXPECT_EQ(trained(job, plan, On::device, 3, "socket"), trained(job, plan, On::host, 3, "socket"));
}

TEST(DeviceTrainer, UnlikeDegreesTiedMatricesAndShardedOptimizers) {
  JobSpec job = deep_job();
  job.model.tied_embeddings = true;
  for (const Zero zero : {Zero::none, Zero::optimizer, Zero::gradients, Zero::parameters}) {
    for (const auto& pipelines : {std::vector<std::vector<int>>{{2, 1}, {1, 4}}, {{1}, {2}}, {{4, 1}, {2}}}) {
      const bool alike = pipelines.front().size() == 1;
      if (zero == Zero::parameters && pipelines.front().size() != pipelines.back().size()) continue;
      Plan plan = make_plan(job, /*microbatch=*/2, pipelines, alike ? std::vector{2, 2} : std::vector{3, 1});
      plan.zero = zero;
      EXPECT_EQ(trained(job, plan, On::device), trained(job, plan, On::host))
          << summary(plan) << to_string(zero);
    }
  }
}

// Pieces are of other sizes on a device, and so are the blocks of a rank.
TEST(DeviceTrainer, GroupsOfPipelinesThatHaveCopiesOfStates) {
  JobSpec job = deep_job();
  job.training.replicas = {.check_every = 1, .on_divergence = OnDivergence::stop};
  for (const Zero zero : {Zero::optimizer, Zero::gradients, Zero::parameters}) {
    Plan plan = make_plan(job, /*microbatch=*/1, {{2, 1}, {1, 1}, {1, 2}, {1, 1}}, {3, 1, 2, 2});
    plan.zero = zero;
    plan.zero_group = 2;
    EXPECT_EQ(trained(job, plan, On::device), trained(job, plan, On::host)) << to_string(zero);
  }
}

TEST(DeviceTrainer, TokensThatAreSplitOverTheGroups) {
  for (const char* family : {"gpt2", "gemma2"}) {
    for (const Precision precision : {Precision::fp32, Precision::bf16}) {
      JobSpec job = deep_job(family);
      job.model.sequence = 7;  // groups of four have shares of 4, 4, 4 and 2 tokens
      job.model.dropout = 0.1;
      job.training.precision = precision;
      // NCCL rounds sums of four 16-bit numbers in between.
      const int most = precision == Precision::bf16 ? 2 : 4;
      Plan plan = make_plan(job, /*microbatch=*/2, {{most, 2}}, {4});
      plan.sequence_parallel = true;
      EXPECT_EQ(trained(job, plan, On::device), trained(job, plan, On::host)) << family;
    }
  }
}

// Of every pipeline's last stage.
Plan offloading(Plan plan) {
  for (PlanPipeline& pipeline : plan.pipelines) pipeline.stages.back().offload = Offload::optimizer;
  return plan;
}

TEST(DeviceTrainer, StatesInPageLockedMemory) {
  for (const Precision precision : {Precision::fp32, Precision::bf16}) {
    JobSpec job = deep_job();
    job.training.precision = precision;
    job.training.ema.emplace();
    for (const Zero zero : {Zero::none, Zero::optimizer}) {
      Plan plan = two_by_two_by_two(job);
      plan.zero = zero;
      EXPECT_EQ(trained(job, offloading(plan), On::device), trained(job, plan, On::host)) << to_string(zero);
    }
  }
}

TEST(DeviceTrainer, InputsOfBlocksInPageLockedMemory) {
  for (const StageRecompute& recompute :
       {StageRecompute(Recompute::offload), StageRecompute(Recompute::offload, 1, Recompute::light)}) {
    JobSpec job = deep_job();
    job.training.precision = Precision::bf16;
    Plan plain = two_by_two_by_two(job);
    Plan interleaved = make_plan(job, /*microbatch=*/2, {{1, 2, 1, 2}}, {4});
    interleaved.interleave = 2;
    Plan split = make_plan(job, /*microbatch=*/2, {{1, 1, 1, 1}}, {4});
    for (PlanStage& stage : split.pipelines[0].stages) stage.weight_delay = 0;
    Plan gathered = plain;
    gathered.zero = Zero::parameters;
    for (Plan* plan : {&plain, &interleaved, &split, &gathered}) {
      const Numbers kept = trained(job, *plan, On::host);
      for (PlanPipeline& pipeline : plan->pipelines)
        for (PlanStage& stage : pipeline.stages)
          if (stage.end_layer - std::max(stage.first_layer, 1) > 1) stage.recompute = recompute;
      EXPECT_EQ(trained(job, *plan, On::device), kept) << summary(*plan);
    }
  }
}

TEST(DeviceTrainer, InterleavedStagesAnd16Bits) {
  for (const Precision precision : {Precision::bf16, Precision::fp16}) {
    JobSpec job = deep_job();
    job.training.precision = precision;
    Plan plan = make_plan(job, /*microbatch=*/2, {{1, 2, 1, 2}}, {4});
    plan.interleave = 2;
    // Sums of two in 16 bit: one rounding, in any order.
    EXPECT_EQ(trained(job, plan, On::device), trained(job, plan, On::host));
  }
}

// Ranks as threads that come through a checkpoint, another plan, and a fault, on either kind of plane.
struct Life {
  const JobSpec job;
  const TokenData data = repeating_data(job);
  const On on;
  CommOptions options{20s};

  struct Rank {
    std::unique_ptr<CommFactory> host;
    std::unique_ptr<FakeGpu> gpu;
    std::unique_ptr<RankTrainer> trainer;
  };
  std::vector<Rank> ranks{};
  std::list<ThreadHub> hubs{};

  struct Ended {
    std::vector<double> losses;
    std::string error;
    Restored restored;
    double ended_s = 0;
  };

  // One generation: everybody builds a trainer, takes over the state, and trains `steps` steps.
  std::vector<Ended> live(const Plan& plan, int steps, const std::string& directory = "", bool save = false) {
    const auto size = static_cast<std::size_t>(num_ranks(plan));
    ThreadHub& hub = hubs.emplace_back(static_cast<int>(size), options);
    ranks.resize(std::max(ranks.size(), size));
    std::vector<Rank> next(ranks.size());
    std::vector<Ended> ended(size);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < size; ++i) {
      next[i].host = hub.factory(static_cast<int>(i));
      if (on == On::device) next[i].gpu = std::make_unique<FakeGpu>(*next[i].host, options);
    }
    const auto begun = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < size; ++i) {
      threads.emplace_back([&, i] {
        Rank& rank = next[i];
        std::optional<DevicePlane> plane;
        if (rank.gpu) plane.emplace(rank.gpu->plane());
        try {
          RankTrainer::make_room(ranks[i].trainer.get(), *rank.host, {});
          rank.trainer = std::make_unique<RankTrainer>(job, plan, static_cast<int>(i), *rank.host, data,
                                                       nullptr, plane ? &*plane : nullptr);
          ended[i].restored = rank.trainer->restore(ranks[i].trainer.get(), directory);
          for (int step = 0; step < steps; ++step) {
            ended[i].losses.push_back(rank.trainer->step().loss);
            if (save) rank.trainer->save(directory, 2);
          }
          for (const SaveResult& result : rank.trainer->saves(true)) EXPECT_EQ(result.error, "");
        } catch (const CommError& error) {
          ended[i].error = error.what();
          if (rank.gpu) rank.gpu->abort();
          rank.host->abort();
        }
        ended[i].ended_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
      });
    }
    for (std::thread& thread : threads) thread.join();
    // The previous state is dropped now that others have it, unless none of them got it.
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      if (ranks[i].gpu) ranks[i].gpu->abort();
      if (ranks[i].host) ranks[i].host->abort();
      ranks[i].trainer.reset();
      ranks[i].gpu.reset();
      ranks[i].host.reset();
      ranks[i] = std::move(next[i]);
    }
    return ended;
  }

  ~Life() {
    for (Rank& rank : ranks) {
      if (rank.gpu) rank.gpu->abort();
      if (rank.host) rank.host->abort();
    }
    for (Rank& rank : ranks) rank.trainer.reset();
  }
};

std::vector<double> losses_over_plans(On on, const std::string& directory, bool offloads = false) {
  JobSpec job = deep_job();
  job.training.steps = 12;
  Life life{.job = job, .on = on};
  std::vector<double> losses;
  const auto add = [&](const std::vector<Life::Ended>& ended) {
    EXPECT_EQ(ended.front().error, "");
    losses.insert(losses.end(), ended.front().losses.begin(), ended.front().losses.end());
  };
  // Training goes on while the state of every step is copied and written.
  const Plan first = two_by_two_by_two(job);
  add(life.live(offloads ? offloading(first) : first, 4, directory, /*save=*/true));
  Plan sharded = make_plan(job, 2, {{2, 1}, {4}}, {2, 2});
  sharded.zero = Zero::optimizer;
  const auto second = life.live(offloads ? offloading(sharded) : sharded, 3, directory);
  EXPECT_EQ(second.front().restored.from, Restored::From::peers);
  EXPECT_TRUE(std::any_of(second.begin(), second.end(),
                          [](const Life::Ended& rank) { return rank.restored.bytes_received > 0; }));
  add(second);
  return losses;
}

// What a trainer holds after make_room(), in bytes per parameter.
struct HeldBytes {
  double gradients = 0, device_states = 0, weights = 0;
};

HeldBytes held_after_make_room(std::size_t free_bytes, std::optional<int64_t> needed_bytes = {},
                               bool offloads = false) {
  JobSpec job = deep_job();
  job.training.precision = Precision::bf16;
  const TokenData data = repeating_data(job);
  ThreadHub first(1, {20s}), second(1, {20s});
  const auto before = first.factory(0), after = second.factory(0);
  FakeGpu gpu(*before, {20s});
  const DevicePlane plane = gpu.plane();
  const Plan plan = make_plan(job, 2, {{1}}, {4});
  RankTrainer trainer(job, offloads ? offloading(plan) : plan, 0, *before, data, nullptr, &plane);
  trainer.step();
  const auto for_each_state = [&](const auto& visit) {
    for (std::size_t i = 0; i < trainer.optimizer().slices().size(); ++i) {
      for (const OptimizerState& state : trainer.optimizer().state(i)) visit(state.tensor);
    }
  };
  std::vector<const void*> before_it;
  for_each_state([&](const at::Tensor& state) { before_it.push_back(state.data_ptr()); });
  fake::set_free_bytes(free_bytes);
  EXPECT_TRUE(RankTrainer::make_room(&trainer, *after, {.needed_bytes = needed_bytes}));
  fake::set_free_bytes(std::size_t{1} << 30);
  HeldBytes held;
  std::size_t number = 0;
  for_each_state([&](const at::Tensor& state) {
    if (state.data_ptr() == before_it[number++]) held.device_states += static_cast<double>(state.nbytes());
  });
  int64_t elements = 0;
  for (const OptimizerSlice& slice : trainer.optimizer().slices()) elements += slice.count;
  held.gradients = static_cast<double>(trainer.optimizer().slices().front().gradient.storage().nbytes()) /
                   static_cast<double>(elements);
  held.device_states /= static_cast<double>(elements);
  for (const Parameter* parameter : trainer.parameters())
    held.weights += static_cast<double>(parameter->value.storage().nbytes());
  held.weights /= static_cast<double>(elements);
  return held;
}

TEST(DeviceTrainer, AChangeOfPlanFreesWhatIsNotTheState) {
  const HeldBytes roomy = held_after_make_room(std::size_t{1} << 30);
  EXPECT_EQ(roomy.gradients, 0);
  EXPECT_EQ(roomy.device_states, 12) << "two moments and the master weights";
  EXPECT_EQ(roomy.weights, 0) << "they follow from the master weights";
  const HeldBytes full = held_after_make_room(1000);
  EXPECT_EQ(full.gradients, 0);
  EXPECT_EQ(full.device_states, 0) << "they are in host memory";
  const HeldBytes larger = held_after_make_room(std::size_t{1} << 30, std::int64_t{1} << 31);
  EXPECT_EQ(larger.device_states, 0) << "the next plan needs more than is free";
  const HeldBytes spare = held_after_make_room(1000, 0);
  EXPECT_EQ(spare.device_states, 12) << "it is in no plan";
  const HeldBytes offloaded = held_after_make_room(1000, {}, /*offloads=*/true);
  EXPECT_EQ(offloaded.device_states, 12) << "they stay where they are: in host memory";
}

TEST(DeviceTrainer, HandsItsStateOverFromHostMemory) {
  const ScratchDirectory with, without;
  const std::vector<double> expected = losses_over_plans(On::host, without.path());
  fake::set_free_bytes(1000);
  EXPECT_EQ(losses_over_plans(On::device, with.path()), expected);
  fake::set_free_bytes(std::size_t{1} << 30);
}

TEST(DeviceTrainer, HandsItsStateOverAndSavesWhileItTrains) {
  const ScratchDirectory with, without;
  const std::vector<double> losses = losses_over_plans(On::host, without.path());
  EXPECT_EQ(losses_over_plans(On::device, with.path()), losses);
  const ScratchDirectory offloaded;
  EXPECT_EQ(losses_over_plans(On::device, offloaded.path(), /*offloads=*/true), losses);
  // A checkpoint of a device, gone on from on processors, and the other way round.
  std::vector<double> after;
  for (const On on : {On::host, On::device}) {
    JobSpec job = deep_job();
    job.training.steps = 12;
    Life life{.job = job, .on = on};
    const auto ended =
        life.live(make_plan(job, 2, {{1, 2}}, {4}), 2, on == On::host ? with.path() : without.path());
    EXPECT_EQ(ended.front().restored.from, Restored::From::checkpoint);
    EXPECT_EQ(ended.front().restored.steps_done, 4);
    after.push_back(ended.front().losses.back());
  }
  EXPECT_EQ(after[0], after[1]);
}

// Tensors of the fake GPUs are in host memory, so that the test can write to them.
TEST(DeviceTrainer, AReplicaThatDiffersIsRepaired) {
  JobSpec job = deep_job();
  job.training.global_batch = 6;
  job.training.replicas = {.check_every = 1, .on_divergence = OnDivergence::heal};
  const Plan plan = make_plan(job, /*microbatch=*/2, {{2, 1}, {1}, {1, 1}}, {1, 1, 1});
  const TokenData data = repeating_data(job);
  const CommOptions options{20s};
  TestJob ranks("thread", num_ranks(plan), options);
  ranks.run([&](CommFactory& factory) {
    FakeGpu gpu(factory, options);
    const DevicePlane plane = gpu.plane();
    RankTrainer trainer(job, plan, factory.rank(), factory, data, nullptr, &plane);
    for (int step = 0; step < 4; ++step) {
      if (step == 2 && factory.rank() == 3) trainer.optimizer().state(0).front().tensor.zero_();
      const std::vector<std::string> diverged = trainer.step().diverged;
      EXPECT_EQ(diverged.empty(), step != 2);
      for (const std::string& line : diverged) EXPECT_THAT(line, ::testing::HasSubstr("rank 3 (pipeline 1"));
    }
  });
  EXPECT_THAT(fake::take_violations(), ::testing::IsEmpty());
}

TEST(DeviceTrainer, HasAContextOnItsOwnDeviceOnly) {
  JobSpec job = deep_job();
  job.training.steps = 12;
  const ScratchDirectory directory;
  static_cast<void>(fake::take_violations());
  static_cast<void>(fake::take_contexts());
  {
    Life life{.job = job, .on = On::device};
    life.live(two_by_two_by_two(job), 2, directory.path(), /*save=*/true);
    life.live(make_plan(job, /*microbatch=*/2, {{1, 2}}, {4}), 2, directory.path());
  }
  std::set<int> own;
  for (int rank = 0; rank < 8; ++rank) own.insert(device_of(rank));
  EXPECT_EQ(fake::take_contexts(), own);
  EXPECT_THAT(fake::take_violations(), ::testing::IsEmpty());
}

TEST(DeviceTrainer, EveryOpenedDeviceIsCounted) {
  static_cast<void>(host_device());
  const int before = Device::opened();
  EXPECT_GE(before, 1);
  static_cast<void>(host_device());
  EXPECT_EQ(Device::opened(), before) << "there is one";
  const CudaDevice first(device_of(0), fake::cuda(), CudaDevice::Tensors::on_host);
  EXPECT_EQ(Device::opened(), before + 1);
  const CudaDevice again(device_of(0), fake::cuda(), CudaDevice::Tensors::on_host);
  EXPECT_EQ(Device::opened(), before + 2) << "a change of plan must not do this";
}

TEST(DeviceTrainer, ADeviceTellsWhatItDoesNotRecoverFrom) {
  CudaDevice device(device_of(0), fake::cuda(), CudaDevice::Tensors::on_host);
  EXPECT_EQ(device.failure(), std::nullopt);
  EXPECT_GT(device.total_bytes(), 0);
  fake::script().set({{.call = "cudaMemGetInfo", .code = cudaErrorECCUncorrectable}});
  EXPECT_EQ(device.failure(), "cudaMemGetInfo: scripted CUDA error");
  try {
    device.used_bytes();
    FAIL();
  } catch (const DeviceFailure& failure) {
    EXPECT_FALSE(failure.out_of_memory());
  }
  fake::script().set({{.call = "cudaHostAlloc", .code = cudaErrorMemoryAllocation}});
  try {
    device.host_memory(1);
    FAIL();
  } catch (const DeviceFailure& failure) {
    EXPECT_TRUE(failure.out_of_memory());
  }
  fake::script().let_go();
}

// Two for messages in both directions, and one for a group that has only collectives. Sums of gradients leave
// most of the device to the backward beside them.
TEST(DeviceTrainer, HasTheCommunicatorsOfNcclThatItUses) {
  static_cast<void>(fake::take_created());
  const JobSpec job = deep_job();
  trained(job, two_by_two_by_two(job), On::device, /*steps=*/1);
  std::map<int, int> ctas;
  int of_first_rank = 0;
  for (const fake::Created& one : fake::take_created()) {
    ++ctas[one.max_ctas];
    if (one.device == device_of(0)) ++of_first_rank;
  }
  EXPECT_EQ(of_first_rank, 4) << "a TP group, two directions of a link, a gradient group";
  EXPECT_EQ(ctas, (std::map<int, int>{{0, 24}, {16, 8}}));
}

// A device goes on with garbage after an abort: no validation loss comes of it.
// Every launch costs host time.
TEST(DeviceTrainer, ATensorForSeveralRanksIsOneLaunch) {
  constexpr int kUpper = 4;
  const CommOptions options{20s};
  TestJob ranks("thread", 1 + kUpper, options);
  fake::take_launches();
  ranks.run([&](CommFactory& factory) {
    FakeGpu gpu(factory, options);
    StageLink link(gpu.plane().factory.create("link", all_ranks(1 + kUpper)), nullptr, ReplicaShape{},
                   ReplicaShape{kUpper});
    const at::Tensor tensor = at::arange(6, at::kFloat);
    if (factory.rank() == 0) {
      link.send(tensor, tensor.sizes()).wait();
    } else {
      EXPECT_TRUE(at::equal(link.receive({6}, at::kFloat).take(), tensor));
    }
    link.settle();
  });
  EXPECT_EQ(fake::take_launches(), 1 + kUpper) << "a send, and a receive by everybody";
  EXPECT_THAT(fake::take_violations(), ::testing::IsEmpty());
}

// Off again at the end.
struct Deterministic {
  Deterministic() { use_deterministic_algorithms(); }
  ~Deterministic() { at::globalContext().setDeterministicAlgorithms(false, /*warn_only=*/false); }
};

TEST(DeviceTrainer, DeterministicRunsHaveTheSameBits) {
  for (const Precision precision : {Precision::fp32, Precision::bf16}) {
    for (const ModelFamily& family : model_families()) {
      JobSpec job = deep_job();
      job.model = test::models_of(family).front().model;
      job.training.precision = precision;
      const Plan plan = two_by_two_by_two(job);
      const Numbers usual = trained(job, plan, On::host);
      const Deterministic from_now_on;
      EXPECT_TRUE(at::globalContext().deterministicAlgorithms());
      EXPECT_EQ(trained(job, plan, On::device), trained(job, plan, On::device)) << family.name;
      EXPECT_EQ(trained(job, plan, On::host), usual)
          << family.name << ": processors are deterministic anyway";
    }
  }
}

TEST(DeviceTrainer, NoValidationLossAfterAGradientGroupHasFailed) {
  const JobSpec job = deep_job();
  const Plan plan = make_plan(job, /*microbatch=*/2, {{1}, {1}}, {2, 2});  // no other groups on the device
  const TokenData data = repeating_data(job);
  TestJob ranks("thread", 2, {20s});
  ranks.run([&](CommFactory& factory) {
    FakeGpu gpu(factory, {20s});
    const DevicePlane plane = gpu.plane();
    RankTrainer trainer(job, plan, factory.rank(), factory, data, nullptr, &plane);
    trainer.step();
    factory.create("before the fault", {0, 1})->barrier();
    if (factory.rank() == 0)
      fake::script().set(
          {{.call = "asynchronous error", .kind = Fault::Kind::late, .code = ncclRemoteError}});
    std::this_thread::sleep_for(300ms);  // the failure is noticed
    EXPECT_THROW(trainer.evaluate(data, 5), CommError);
  });
  fake::script().let_go();
}

struct MidwayFault {
  std::string name;
  Fault fault;
};
void PrintTo(const MidwayFault& fault, std::ostream* out) {
  *out << fault.name;
}

class DeviceFaults : public ::testing::TestWithParam<MidwayFault> {};

// In the middle of training: every rank gets one error in time, and the same ranks build their groups again
// and go on with the state that they have, as if nothing had happened.
TEST_P(DeviceFaults, EndInOneErrorAndARebuiltGroup) {
  JobSpec job = deep_job();
  job.training.steps = 6;
  const Plan plan = two_by_two_by_two(job);
  const auto expected = [&] {
    Life life{.job = job, .on = On::host};
    return life.live(plan, 6).front().losses;
  }();

  Life life{.job = job, .on = On::device, .options = {1500ms}};
  const auto before = life.live(plan, 2);
  ASSERT_EQ(before.front().error, "");
  fake::script().set({GetParam().fault});
  const auto during = life.live(plan, /*steps=*/500);  // until it fails
  fake::script().let_go();
  int errors = 0;
  for (const Life::Ended& rank : during) {
    errors += rank.error.empty() ? 0 : 1;
    EXPECT_LT(rank.ended_s, 15);
  }
  EXPECT_EQ(errors, num_ranks(plan)) << "a rank went on without the others";
  EXPECT_THAT(during[3].error, ::testing::Not(::testing::IsEmpty()));

  const auto after = life.live(plan, 4);
  ASSERT_EQ(after.front().error, "");
  const int64_t done = after.front().restored.steps_done;
  EXPECT_GE(done, 2);
  EXPECT_EQ(after.front().restored.from, Restored::From::peers);
  for (std::size_t i = 0;
       i < after.front().losses.size() && static_cast<std::size_t>(done) + i < expected.size(); ++i)
    EXPECT_EQ(after.front().losses[i], expected[static_cast<std::size_t>(done) + i])
        << "step " << done + static_cast<int64_t>(i);
  EXPECT_THAT(fake::take_violations(), ::testing::IsEmpty());
}

Fault midway(const char* call, Fault::Kind kind, int after) {
  return {.call = call, .kind = kind, .code = ncclSystemError, .device = device_of(3), .after = after};
}

INSTANTIATE_TEST_SUITE_P(
    Nccl, DeviceFaults,
    ::testing::Values(MidwayFault{"sum_fails", midway("ncclAllReduce", Fault::Kind::error, 40)},
                      MidwayFault{"sum_hangs", midway("ncclAllReduce", Fault::Kind::hang, 40)},
                      MidwayFault{"send_fails", midway("ncclSend", Fault::Kind::error, 3)},
                      MidwayFault{"receive_hangs", midway("ncclRecv", Fault::Kind::hang, 3)},
                      MidwayFault{"fails_by_itself",
                                  {.call = "asynchronous error",
                                   .kind = Fault::Kind::late,
                                   .code = ncclRemoteError,
                                   .device = device_of(3),
                                   .delay = 60ms}}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace sailor
