// Training of adapters (LoRA) as a whole: base model, checkpoints, resume, export.
#include "trainer/checkpoint/adapter_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>

#include "planner/spec/error.h"
#include "planner/spec/model_directory.h"
#include "planner/spec/text_file.h"
#include "tests/unit/planner/error_of.h"
#include "tests/unit/planner/scratch.h"
#include "tests/unit/trainer/comm/ranks.h"
#include "tests/unit/trainer/small_training.h"
#include "trainer/checkpoint/checkpoint_directory.h"
#include "trainer/checkpoint/export_model.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/checkpoint/stored_model.h"
#include "trainer/model/element_types.h"
#include "trainer/pipeline/rank_trainer.h"

namespace sailor {
namespace {

using ::testing::HasSubstr;

class Adapters : public ::testing::Test {
 protected:
  // A base model, which knows nothing.
  Adapters() {
    const JobSpec job = small_job("llama", /*layers=*/4, /*global_batch=*/8);
    run(job, {{1}}, {8}, [&](RankTrainer& trainer) { trainer.export_to(base_); });
  }

  JobSpec adapted_job(Precision precision = Precision::fp32) const {
    JobSpec job = scheduled_job("llama", /*steps=*/6);
    job.model = read_model_config(base_);
    job.training.precision = precision;
    job.training.lora = LoraSpec{.r = 2, .alpha = 4, .target_modules = {"q_proj", "v_proj", "down_proj"}};
    return job;
  }

  template <class Body>
  static void run(const JobSpec& job, const std::vector<std::vector<int>>& pipelines,
                  const std::vector<int>& microbatches, const Body& body) {
    const Plan plan = make_plan(job, /*microbatch=*/1, pipelines, microbatches);
    const TokenData data = repeating_data(job);
    TestJob ranks("thread", num_ranks(plan));
    ranks.run([&](CommFactory& factory) {
      RankTrainer trainer(job, plan, factory.rank(), factory, data);
      body(trainer);
    });
  }

  // Losses of the steps up to `until`, from the newest checkpoint on if wanted; saves then if wanted.
  std::vector<double> train(const JobSpec& job, const std::vector<std::vector<int>>& pipelines,
                            const std::vector<int>& microbatches, bool load, int64_t until, bool save) const {
    std::mutex mutex;
    std::vector<double> losses;
    run(job, pipelines, microbatches, [&](RankTrainer& trainer) {
      if (load) trainer.load(saved_);
      std::vector<double> mine;
      while (trainer.next_step() < until) mine.push_back(trainer.step().loss);
      if (save) {
        trainer.save(saved_, 3);
        for (const SaveResult& result : trainer.saves(true)) EXPECT_EQ(result.error, "");
      }
      const std::lock_guard lock(mutex);
      losses = mine;
    });
    return losses;
  }

  const std::string scratch_ = test::scratch_directory("adapters");
  const std::string base_ = scratch_ + "/base", saved_ = scratch_ + "/saved";
};

// The first and the last rank of the second plan have no adapters.
TEST_F(Adapters, ResumeUnderAnotherPlanAsIfNothingHadHappened) {
  for (const Precision precision : {Precision::fp32, Precision::bf16}) {
    const JobSpec job = adapted_job(precision);
    const std::vector<double> expected = train(job, {{1}}, {8}, false, 6, false);
    EXPECT_LT(expected.back(), expected.front());
    std::filesystem::remove_all(saved_);
    train(job, {{2, 1}, {1}}, {4, 4}, false, 2, true);
    train(job, {{1, 1, 2, 1, 1, 1}}, {8}, true, 4, true);
    const std::vector<double> losses = train(job, {{4}, {1, 2}}, {5, 3}, true, 6, false);
    ASSERT_EQ(losses.size(), 2u);
    const double tolerance = precision == Precision::fp32 ? 1e-6 : 2e-3;
    EXPECT_NEAR(losses[0], expected[4], tolerance * expected[4]);
    EXPECT_NEAR(losses[1], expected[5], tolerance * expected[5]);
  }
}

TEST_F(Adapters, ACheckpointHoldsAdaptersOnlyAndNamesTheirBase) {
  train(adapted_job(), {{2}}, {8}, false, 1, true);
  const CheckpointManifest manifest = open_checkpoint(saved_ + "/step-1");
  EXPECT_EQ(manifest.model.from, base_);
  EXPECT_EQ(manifest.lora->r, 2);
  EXPECT_EQ(manifest.lora->base_digest, StoredModel(read_model_config(base_)).digest());
  // Per block: q and v [16, 16], down [16, 32], each (in + out) x 2 elements; value, m and v.
  int64_t elements = 0;
  for (const CheckpointTensor& tensor : manifest.tensors) elements += tensor.elements();
  EXPECT_EQ(elements, 3 * 4 * 2 * (2 * (16 + 16) + 16 + 32));
}

TEST_F(Adapters, OtherAdaptersAreRefusedInOneLine) {
  const JobSpec job = adapted_job();
  train(job, {{1}}, {8}, false, 1, true);
  const auto refusal = [&](const JobSpec& other) {
    return test::error_of([&] { train(other, {{1}}, {8}, true, 2, false); });
  };
  JobSpec other = job;
  other.training.lora->r = 4;
  EXPECT_THAT(refusal(other),
              HasSubstr("training.lora.r: the checkpoint " + saved_ + "/step-1 has 2, this job has 4"));
  other = job;
  other.training.lora->alpha = 3;
  EXPECT_THAT(refusal(other), HasSubstr("training.lora.alpha"));
  other = job;
  other.training.lora->target_modules = {"self_attn.q_proj", "down_proj", "v_proj"};
  EXPECT_EQ(refusal(other), "no error") << "the same modules, in other words";
  other.training.lora->target_modules = {"q_proj"};
  EXPECT_THAT(refusal(other), HasSubstr("training.lora.target_modules"));
  other.training.lora.reset();
  EXPECT_THAT(refusal(other),
              HasSubstr("training.lora: the checkpoint " + saved_ +
                        "/step-1 has \"adapters of rank 2\", this job has \"all parameters\""));
}

TEST_F(Adapters, AnotherBaseIsRefused) {
  JobSpec job = adapted_job();
  train(job, {{1}}, {8}, false, 1, true);
  std::filesystem::rename(base_, scratch_ + "/moved");
  job.model.from = scratch_ + "/moved";
  EXPECT_EQ(test::error_of([&] { train(job, {{1}}, {8}, true, 2, false); }), "no error");
  JobSpec another = small_job("llama", 4, 8);
  another.training.seed = 2;
  run(another, {{1}}, {8}, [&](RankTrainer& trainer) { trainer.export_to(scratch_ + "/other"); });
  job.model.from = scratch_ + "/other";
  EXPECT_THAT(test::error_of([&] { train(job, {{1}}, {8}, true, 2, false); }),
              HasSubstr("model.from: the checkpoint " + saved_ + "/step-1 has \"adapters of other weights, " +
                        base_));
}

TEST_F(Adapters, FrozenWeightsStayAndAreNoPartOfTheNorm) {
  const JobSpec job = adapted_job();
  const StoredModel base(job.model);
  run(job, {{2, 1}}, {8}, [&](RankTrainer& trainer) {
    std::map<std::string, at::Tensor> before;
    for (const Parameter* parameter : trainer.parameters())
      before[parameter->name] = parameter->value.detach().clone();
    trainer.step();
    for (const Parameter* parameter : trainer.parameters()) {
      // A of a B that was zero has had no gradient, only weight decay.
      if (parameter->frozen) {
        EXPECT_TRUE(parameter->value.equal(before.at(parameter->name))) << parameter->name;
        EXPECT_FALSE(parameter->value.grad().defined()) << parameter->name;
      } else {
        EXPECT_FALSE(parameter->value.equal(before.at(parameter->name))) << parameter->name;
      }
    }
    for (const OptimizerSlice& slice : trainer.optimizer().slices())
      EXPECT_THAT(slice.name, HasSubstr(".lora_"));
  });
}

TEST_F(Adapters, MergedWeightsComputeTheSame) {
  const JobSpec job = adapted_job();
  const TokenData data = repeating_data(job);
  double adapted = 0, merged = 0;
  std::map<std::string, at::Tensor> values;
  run(job, {{1}}, {8}, [&](RankTrainer& trainer) {
    for (int step = 0; step < 5; ++step) trainer.step();
    adapted = trainer.evaluate(data, 16);
    for (const Parameter* parameter : trainer.parameters())
      values[parameter->name] = parameter->value.detach().clone();
    trainer.export_to(scratch_ + "/adapter");
  });
  const auto value_of = [&](const ParameterSpec& spec) { return values.at(spec.name); };
  export_model(scratch_ + "/merged", job.model, at::kFloat, [&](const ParameterSpec& weight) {
    return with_merged_adapters(weight, value_of(weight), job.model, *job.training.lora, value_of);
  });
  JobSpec plain = job;
  plain.training.lora.reset();
  plain.model = read_model_config(scratch_ + "/merged");
  run(plain, {{1}}, {8}, [&](RankTrainer& trainer) { merged = trainer.evaluate(data, 16); });
  EXPECT_NEAR(merged, adapted, 1e-6 * adapted);

  const SafetensorsFile file(scratch_ + "/adapter/adapter_model.safetensors");
  EXPECT_EQ(file.tensors().size(), 4u * 3 * 2);
  const StoredTensor* b = file.find("base_model.model.model.layers.3.mlp.down_proj.lora_B.weight");
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(b->shape, (std::vector<int64_t>{16, 2}));
  const auto config = nlohmann::json::parse(read_text_file(scratch_ + "/adapter/adapter_config.json"));
  EXPECT_EQ(config.at("peft_type"), "LORA");
  EXPECT_EQ(config.at("lora_alpha"), 4);
  EXPECT_EQ(config.at("target_modules"), (std::vector<std::string>{"q_proj", "v_proj", "down_proj"}));
  EXPECT_EQ(config.at("base_model_name_or_path"), base_);
}

}  // namespace
}  // namespace sailor
