#include "planner/report/framework_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "planner/spec/text.h"
#include "tests/unit/planner/instance.h"

namespace sailor {
namespace {

// The value of a key of TOML or YAML, wherever it is.
std::string value_of(const std::string& text, const std::string& key) {
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    const size_t from = line.find_first_not_of(' ');
    for (const std::string& mark : {key + " = ", key + ": "})
      if (from != std::string::npos && line.compare(from, mark.size(), mark) == 0)
        return line.substr(from + mark.size());
  }
  return "absent";
}

class FrameworkConfigs : public testing::Test {
 protected:
  FrameworkConfigs() : in_(test::empty_instance(8, 16)) {
    in_.add_type("fast", 0.01, 4'000'000'000, 4);
    in_.job.training.precision = Precision::bf16;
    in_.job.training.steps = 100;
    in_.job.training.optimizer.lr = 0.001;
    in_.job.training.clip_grad_norm = 2;
  }
  // Equal pipelines of these stages.
  Plan plan(int pipelines, const std::vector<test::StageSpec>& stages, int microbatch = 1) const {
    Plan plan = test::make_plan(in_, microbatch, std::vector(static_cast<size_t>(pipelines), stages));
    if (pipelines > 1) plan.zero = Zero::optimizer;
    return plan;
  }
  Plan split() const { return plan(2, {{0, 6, "fast", 2}, {6, 10, "fast", 2}}); }
  Plan whole() const { return plan(4, {{0, 10, "fast", 1}}, 2); }

  test::Instance in_;
};

TEST_F(FrameworkConfigs, TorchTitanHasThePlan) {
  const FrameworkConfig out = torchtitan_config(in_.job, split());
  ASSERT_EQ(out.why_not, "");
  for (const auto& [key, value] :
       std::map<std::string, std::string>{{"tensor_parallel_degree", "2"},
                                          {"pipeline_parallel_degree", "2"},
                                          {"data_parallel_shard_degree", "2"},
                                          {"data_parallel_replicate_degree", "1"},
                                          {"context_parallel_degree", "1"},
                                          {"pipeline_parallel_schedule", "\"1F1B\""},
                                          {"pipeline_parallel_microbatch_size", "1"},
                                          {"local_batch_size", "8"},
                                          {"global_batch_size", "16"},
                                          {"steps", "100"},
                                          {"max_norm", "2.0"},
                                          {"lr", "0.001"},
                                          {"mixed_precision_param", "\"bfloat16\""},
                                          {"mode", "\"none\""},
                                          {"decay_ratio", "0.0"}})
    EXPECT_EQ(value_of(out.text, key), value) << key;
  EXPECT_NE(out.text.find("[\"tok_embeddings\", \"layers.0\", \"layers.1\", \"layers.2\", \"layers.3\", "
                          "\"layers.4\"],\n    [\"layers.5\", \"layers.6\", \"layers.7\", \"norm\", "
                          "\"output\"],\n"),
            std::string::npos)
      << out.text;
}

// Hybrid ZeRO.
TEST_F(FrameworkConfigs, GroupsThatShareStatesAreADimensionOfTheirOwn) {
  Plan of = whole();
  of.zero_group = 2;
  const FrameworkConfig torchtitan = torchtitan_config(in_.job, of);
  ASSERT_EQ(torchtitan.why_not, "");
  EXPECT_EQ(value_of(torchtitan.text, "data_parallel_replicate_degree"), "2");
  EXPECT_EQ(value_of(torchtitan.text, "data_parallel_shard_degree"), "2");
  const FrameworkConfig mesh = mesh_config(in_.job, of);
  ASSERT_EQ(mesh.why_not, "");
  const auto config = nlohmann::json::parse(mesh.text);
  EXPECT_EQ(config["mesh_shape"], (nlohmann::json{2, 2, 1, 1}));
  EXPECT_EQ(config["mesh_dim_names"], (nlohmann::json{"dp_replicate", "dp_shard", "pp", "tp"}));
  EXPECT_EQ(value_of(nemo_config(in_.job, of).text, "num_distributed_optimizer_instances"), "2");
  for (const FrameworkConfig& out : {accelerate_config(in_.job, of), deepspeed_config(in_.job, of)})
    EXPECT_EQ(out.why_not, "groups of its pipelines each have a copy of what ZeRO shards");
  in_.job.trainer.kind = "hsdp";
  of.zero = Zero::parameters;
  const FrameworkConfig accelerate = accelerate_config(in_.job, of);
  ASSERT_EQ(accelerate.why_not, "");
  EXPECT_EQ(value_of(accelerate.text, "parallelism_config_dp_replicate_size"), "2");
  EXPECT_EQ(value_of(accelerate.text, "parallelism_config_dp_shard_size"), "2");
}

TEST_F(FrameworkConfigs, ContextParallelRanksComeBetweenTheOthers) {
  Plan of = plan(2, {{0, 6, "fast", 2}, {6, 10, "fast", 2}});
  for (PlanPipeline& pipeline : of.pipelines)
    for (PlanStage& stage : pipeline.stages) stage.shape.cp = 2;
  const FrameworkConfig mesh = mesh_config(in_.job, of);
  ASSERT_EQ(mesh.why_not, "");
  const auto config = nlohmann::json::parse(mesh.text);
  EXPECT_EQ(config["mesh_shape"], (nlohmann::json{2, 2, 2, 2}));
  EXPECT_EQ(config["mesh_dim_names"], (nlohmann::json{"dp", "pp", "cp", "tp"}));
  EXPECT_EQ(config["ranks"][2]["cp_rank"], 1);
  EXPECT_EQ(config["ranks"][2]["tp_rank"], 0);
  EXPECT_EQ(config["ranks"].size(), 16u);
  const FrameworkConfig nemo = nemo_config(in_.job, of);
  ASSERT_EQ(nemo.why_not, "");
  EXPECT_EQ(value_of(nemo.text, "context_parallel_size"), "2");
  EXPECT_EQ(value_of(nemo.text, "cp_comm_type"), "a2a");
  EXPECT_THAT(nemo.notes, testing::Contains(testing::StartsWith(
                              "start 16 ranks: tensor-parallel 2 x context-parallel 2 x data-parallel 2")));
  EXPECT_EQ(torchtitan_config(in_.job, of).why_not, "it has context parallelism");
}

// Stages of five and three blocks.
TEST_F(FrameworkConfigs, SomeBlocksAreRecomputed) {
  const auto recomputing = [&](int first, int second) {
    Plan of = split();
    for (PlanPipeline& pipeline : of.pipelines)
      for (const auto& [stage, blocks] : {std::pair(0, first), std::pair(1, second)})
        pipeline.stages[static_cast<size_t>(stage)].recompute =
            blocks == (stage == 0 ? 5 : 3) ? StageRecompute(Recompute::full)
                                           : StageRecompute(Recompute::full, blocks, Recompute::none);
    return of;
  };
  // The first two of every stage; every second one would be two of five and one of three.
  const FrameworkConfig nemo = nemo_config(in_.job, recomputing(2, 2));
  EXPECT_EQ(value_of(nemo.text, "recompute_method"), "block");
  EXPECT_EQ(value_of(nemo.text, "recompute_num_layers"), "2");
  EXPECT_EQ(torchtitan_config(in_.job, recomputing(2, 2)).why_not,
            "some blocks of a stage recompute more than others");
  const FrameworkConfig every = torchtitan_config(in_.job, recomputing(2, 1));
  EXPECT_EQ(every.why_not, "");
  EXPECT_EQ(value_of(every.text, "mode"), "\"selective\"");
  EXPECT_EQ(value_of(every.text, "selective_ac_option"), "\"2\"");
  EXPECT_EQ(nemo_config(in_.job, recomputing(2, 1)).why_not,
            "some blocks of a stage recompute more than others");
  // The first four, as far as there are.
  EXPECT_EQ(value_of(nemo_config(in_.job, recomputing(4, 3)).text, "recompute_num_layers"), "4");
  EXPECT_EQ(value_of(nemo_config(in_.job, recomputing(5, 3)).text, "recompute_method"), "uniform");
  const auto mesh = nlohmann::json::parse(mesh_config(in_.job, recomputing(2, 1)).text);
  EXPECT_EQ(mesh["recompute"], "full");
  EXPECT_EQ(mesh["recomputed_every"], 2);
  EXPECT_FALSE(mesh.contains("first_recomputed"));
}

TEST_F(FrameworkConfigs, TorchTitanAccumulatesWithoutStages) {
  const FrameworkConfig out = torchtitan_config(in_.job, whole());
  EXPECT_EQ(value_of(out.text, "local_batch_size"), "2");
  EXPECT_EQ(value_of(out.text, "global_batch_size"), "16");
  EXPECT_EQ(out.text.find("pipeline_parallel_schedule"), std::string::npos);
}

TEST_F(FrameworkConfigs, TorchTitanInterleavesAndRecomputes) {
  Plan of = plan(2, {{0, 3, "fast", 1}, {3, 5, "fast", 1}, {5, 7, "fast", 1}, {7, 10, "fast", 1}});
  of.interleave = 2;
  for (PlanPipeline& pipeline : of.pipelines)
    for (PlanStage& stage : pipeline.stages) stage.recompute = Recompute::full;
  const FrameworkConfig out = torchtitan_config(in_.job, of);
  EXPECT_EQ(value_of(out.text, "pipeline_parallel_schedule"), "\"Interleaved1F1B\"");
  EXPECT_EQ(value_of(out.text, "pipeline_parallel_degree"), "2");
  EXPECT_EQ(value_of(out.text, "mode"), "\"full\"");
}

TEST_F(FrameworkConfigs, TorchTitanSaysWhatItCannotRun) {
  const auto why = [&](const Plan& plan) {
    const FrameworkConfig out = torchtitan_config(in_.job, plan);
    EXPECT_EQ(out.text, "");
    return out.why_not;
  };
  Plan whole_states = split();
  whole_states.zero = Zero::none;
  EXPECT_EQ(why(whole_states),
            "it keeps whole optimizer states only without tensor and pipeline parallelism");
  EXPECT_EQ(why(plan(1, {{0, 10, "fast", 2}})),
            "it trains a single pipeline with tensor or pipeline parallelism in fp32 only");
  EXPECT_EQ(why(plan(8, {{0, 3, "fast", 1}, {3, 5, "fast", 1}, {5, 10, "fast", 1}})),
            "its 1F1B needs as many microbatches as stages: 2 microbatches, 3 stages");
  Plan selective = split();
  for (PlanPipeline& pipeline : selective.pipelines)
    for (PlanStage& stage : pipeline.stages) stage.recompute = Recompute::selective;
  EXPECT_EQ(why(selective), "it cannot recompute the inside of attention alone");
  EXPECT_EQ(why(test::make_plan(in_, 1, {{{0, 5, "fast", 2}, {5, 10, "fast", 1}}})),
            "its stages have different tensor-parallel degrees");
  in_.job.training.precision = Precision::fp16;
  EXPECT_EQ(why(split()), "it has no fp16");
}

TEST_F(FrameworkConfigs, DeepSpeedHasThePlan) {
  in_.job.training.precision = Precision::fp16;
  const FrameworkConfig out = deepspeed_config(in_.job, whole());
  ASSERT_EQ(out.why_not, "");
  const nlohmann::json config = nlohmann::json::parse(out.text);
  EXPECT_EQ(config.at("train_batch_size"), 16);
  EXPECT_EQ(config.at("train_micro_batch_size_per_gpu"), 2);
  EXPECT_EQ(config.at("gradient_accumulation_steps"), 2);
  EXPECT_EQ(config.at("zero_optimization").at("stage"), 1);
  EXPECT_EQ(config.at("fp16").at("initial_scale_power"), 16);
  EXPECT_FALSE(config.contains("bf16"));
  EXPECT_EQ(config.at("gradient_clipping"), 2);
  EXPECT_EQ(config.at("optimizer").at("params").at("lr"), 0.001);
  EXPECT_EQ(deepspeed_config(in_.job, split()).why_not,
            "its configuration has no tensor and pipeline parallelism");
}

TEST_F(FrameworkConfigs, AccelerateHasThePlan) {
  Plan of = whole();
  const FrameworkConfig sharded = accelerate_config(in_.job, of);
  EXPECT_EQ(value_of(sharded.text, "distributed_type"), "DEEPSPEED");
  EXPECT_EQ(value_of(sharded.text, "zero_stage"), "1");
  EXPECT_EQ(value_of(sharded.text, "gradient_accumulation_steps"), "2");
  EXPECT_EQ(value_of(sharded.text, "num_machines"), "absent") << "not placed";
  of.zero = Zero::none;
  for (size_t i = 0; i < 4; ++i) {
    PlanStage& stage = of.pipelines[i].stages[0];
    stage.node = i < 2 ? "a" : "b";
    stage.gpus = {static_cast<int>(i % 2)};
  }
  const FrameworkConfig plain = accelerate_config(in_.job, of);
  EXPECT_EQ(value_of(plain.text, "distributed_type"), "MULTI_GPU");
  EXPECT_EQ(value_of(plain.text, "mixed_precision"), "bf16");
  EXPECT_EQ(value_of(plain.text, "num_processes"), "4");
  EXPECT_EQ(value_of(plain.text, "num_machines"), "2");
  of.pipelines[1].stages[0].node = "b";
  EXPECT_EQ(accelerate_config(in_.job, of).why_not,
            "its launcher starts as many ranks on every node, and the plan does not (`sailor launch` can)");
}

TEST_F(FrameworkConfigs, AccelerateShardsParametersAsTheTrainerDoes) {
  Plan of = whole();
  of.zero = Zero::none;  // the framework shards
  for (PlanPipeline& pipeline : of.pipelines) pipeline.stages[0].recompute = Recompute::full;
  in_.job.trainer.kind = "fsdp";
  const std::string fsdp = accelerate_config(in_.job, of).text;
  EXPECT_EQ(value_of(fsdp, "distributed_type"), "FSDP");
  EXPECT_EQ(value_of(fsdp, "fsdp_version"), "2");
  EXPECT_EQ(value_of(fsdp, "fsdp_reshard_after_forward"), "true");
  EXPECT_EQ(value_of(fsdp, "fsdp_activation_checkpointing"), "true");
  in_.job.trainer.kind = "deepspeed-zero3";
  EXPECT_EQ(accelerate_config(in_.job, of).why_not,
            "its configuration can ask for recomputation of whole blocks, with FSDP, and for no other");
  const FrameworkConfig deepspeed = deepspeed_config(in_.job, of);
  EXPECT_EQ(nlohmann::json::parse(deepspeed.text).at("zero_optimization").at("stage"), 3);
  EXPECT_THAT(deepspeed.notes, testing::Contains(testing::HasSubstr("must recompute its blocks")));
  for (PlanPipeline& pipeline : of.pipelines) pipeline.stages[0].recompute = Recompute::none;
  const std::string zero3 = accelerate_config(in_.job, of).text;
  EXPECT_EQ(value_of(zero3, "distributed_type"), "DEEPSPEED");
  EXPECT_EQ(value_of(zero3, "zero_stage"), "3");
}

TEST_F(FrameworkConfigs, NemoHasThePlan) {
  const FrameworkConfig out = nemo_config(in_.job, split());
  ASSERT_EQ(out.why_not, "");
  for (const auto& [key, value] :
       std::map<std::string, std::string>{{"tensor_model_parallel_size", "2"},
                                          {"pipeline_model_parallel_size", "2"},
                                          {"virtual_pipeline_model_parallel_size", "null"},
                                          {"pipeline_model_parallel_layout", "\"Ettttt|tttL\""},
                                          {"micro_batch_size", "1"},
                                          {"global_batch_size", "16"},
                                          {"use_distributed_optimizer", "true"},
                                          {"precision", "bf16-mixed"},
                                          {"clip_grad", "2.0"}})
    EXPECT_EQ(value_of(out.text, key), value) << key;
  const FrameworkConfig even = nemo_config(in_.job, plan(2, {{0, 5, "fast", 2}, {5, 10, "fast", 2}}));
  EXPECT_EQ(value_of(even.text, "pipeline_model_parallel_layout"), "absent");
  in_.job.training.precision = Precision::fp16;
  EXPECT_EQ(nemo_config(in_.job, split()).why_not,
            "a recipe's precision is bf16, and its YAML cannot change that to fp16");
}

TEST_F(FrameworkConfigs, TokensAreSplitWithTensorParallelismOnly) {
  Plan whole_groups = split(), split_tokens = whole_groups, alone = whole();
  split_tokens.sequence_parallel = alone.sequence_parallel = true;
  const auto says = [&](const Plan& of) {
    const std::string nemo = value_of(nemo_config(in_.job, of).text, "sequence_parallel");
    const bool mesh = nlohmann::json::parse(mesh_config(in_.job, of).text).at("sequence_parallel");
    EXPECT_EQ(nemo, mesh ? "true" : "false");
    return mesh;
  };
  EXPECT_FALSE(says(whole_groups));
  EXPECT_TRUE(says(split_tokens));
  EXPECT_FALSE(says(alone));
  in_.job.trainer.kind = "torchtitan";  // always
  EXPECT_TRUE(says(whole_groups));
}

TEST_F(FrameworkConfigs, MeshNumbersRanksAsTheFrameworkDoes) {
  const nlohmann::json by_pipelines = nlohmann::json::parse(mesh_config(in_.job, split()).text);
  in_.job.trainer.kind = "megatron-core";
  const nlohmann::json by_stages = nlohmann::json::parse(mesh_config(in_.job, split()).text);
  EXPECT_EQ(by_pipelines.at("mesh_dim_names"), nlohmann::json({"dp", "pp", "tp"}));
  EXPECT_EQ(by_stages.at("mesh_dim_names"), nlohmann::json({"pp", "dp", "tp"}));
  for (const nlohmann::json* mesh : {&by_pipelines, &by_stages}) {
    EXPECT_EQ(mesh->at("mesh_shape"), nlohmann::json({2, 2, 2}));
    EXPECT_EQ(mesh->at("layers"), nlohmann::json({{0, 6}, {6, 10}}));
    EXPECT_EQ(mesh->at("microbatches"), 8);
    EXPECT_EQ(mesh->at("precision"), "bf16");
    EXPECT_EQ(mesh->at("zero_stage"), 1);
    // A rank's coordinates: the last dimension of a mesh runs fastest.
    for (size_t rank = 0; rank < 8; ++rank)
      for (size_t i = 0; i < 3; ++i) {
        const std::string dimension = mesh->at("mesh_dim_names").at(i);
        const char* place = dimension == "dp" ? "pipeline" : dimension == "pp" ? "stage" : "tp_rank";
        EXPECT_EQ(mesh->at("ranks").at(rank).at(place), rank >> (2 - i) & 1) << rank << " " << dimension;
      }
  }
}

TEST_F(FrameworkConfigs, SaysWhichSettingsAreMissing) {
  in_.job.training.z_loss = 0.001;
  in_.job.training.optimizer.name = "muon";
  EXPECT_EQ(deepspeed_config(in_.job, whole()).notes.back(),
            "the file does not have these keys of `training`: optimizer, z_loss");
}

TEST(ConfigFormats, NumbersHaveFractions) {
  EXPECT_EQ(real_text(1e-8), "1.0e-08");
  EXPECT_EQ(real_text(1.5e-5), "1.5e-05");
  EXPECT_EQ(real_text(2), "2.0");
  EXPECT_EQ(real_text(0.25), "0.25");
}

TEST(ConfigFormats, KeepTrainersThatTheyAreFor) {
  EXPECT_EQ(find_config_format("torchtitan")->trainer_for("deepspeed"), "torchtitan");
  EXPECT_EQ(find_config_format("accelerate")->trainer_for("deepspeed"), "deepspeed");
  EXPECT_EQ(find_config_format("accelerate")->trainer_for("fsdp"), "fsdp");
  EXPECT_EQ(find_config_format("deepspeed")->trainer_for("deepspeed-zero3"), "deepspeed-zero3");
  EXPECT_EQ(find_config_format("mesh")->trainer_for("mine"), "mine");
  EXPECT_EQ(find_config_format("mesh")->trainer_for(""), "torchrun");
  EXPECT_EQ(find_config_format("table"), nullptr);
}

}  // namespace
}  // namespace sailor
