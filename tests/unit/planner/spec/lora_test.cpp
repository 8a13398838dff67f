#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "planner/spec/error.h"
#include "planner/spec/job_spec.h"
#include "planner/spec/lora_parameters.h"
#include "planner/spec/model_directory.h"
#include "planner/spec/model_family.h"
#include "planner/spec/text_file.h"
#include "planner/spec/training_flops.h"
#include "tests/unit/planner/error_of.h"
#include "tests/unit/planner/family_models.h"
#include "tests/unit/planner/scratch.h"

namespace sailor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ModelSpec grouped_llama() {
  ModelSpec model;
  set_family(model, "llama");
  model.layers = 2;
  model.hidden = 32;
  model.heads = 4;
  model.kv_heads = 2;
  model.feed_forward = 48;
  model.sequence = 16;
  model.vocabulary = 64;
  return model;
}

class LoraJob : public ::testing::Test {
 protected:
  LoraJob() {
    std::filesystem::create_directories(scratch_ + "/base");
    write_file_atomically(scratch_ + "/base/config.json", to_model_config(grouped_llama(), "float32"));
  }
  // Of a job with these lines under `training.lora`.
  LoraSpec lora_of(const std::string& lines, const std::string& model = "{from: base}") const {
    return *parse_job_spec(
                "model: " + model + "\ntraining:\n  global_batch: 4\n  steps: 2\n  lora:\n" + lines,
                scratch_ + "/job.yaml")
                .training.lora;
  }
  std::string error_of_lora(const std::string& lines, const std::string& model = "{from: base}") const {
    return test::error_of([&] { lora_of(lines, model); });
  }
  const std::string scratch_ = test::scratch_directory("lora");
};

TEST_F(LoraJob, AllLinearLayersAreTheDefault) {
  for (const char* lines : {"    r: 4\n", "    r: 4\n    target_modules: all-linear\n    dropout: 0\n"}) {
    const LoraSpec lora = lora_of(lines);
    EXPECT_EQ(lora.r, 4);
    EXPECT_EQ(lora.scale(), 1);
    EXPECT_THAT(lora.target_modules,
                ElementsAre("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"));
  }
}

TEST_F(LoraJob, NamesModulesAsPeftDoes) {
  const LoraSpec lora = lora_of("    r: 8\n    alpha: 32\n    target_modules: [q_proj, mlp.down_proj]\n");
  EXPECT_EQ(lora.scale(), 4);
  EXPECT_TRUE(lora.targets("self_attn.q_proj"));
  EXPECT_TRUE(lora.targets("mlp.down_proj"));
  EXPECT_FALSE(lora.targets("self_attn.k_proj"));
  EXPECT_FALSE(lora.targets("mlp.xdown_proj"));
}

TEST_F(LoraJob, RefusesWhatItCannotTrain) {
  EXPECT_THAT(error_of_lora("    r: 8\n    target_modules:\n    - q_porj\n"),
              HasSubstr("job.yaml:8: training.lora.target_modules[0]: \"q_porj\" is no linear layer of this "
                        "model's blocks, did you mean \"q_proj\"? (known: q_proj, k_proj, v_proj, o_proj, "
                        "gate_proj, up_proj, down_proj; or all-linear for all)"));
  EXPECT_THAT(error_of_lora("    r: 8\n    target_modules: [lm_head]\n"), HasSubstr("no linear layer"));
  EXPECT_THAT(error_of_lora("    r: 8\n    target_modules: q_proj\n"),
              HasSubstr("must be a list of modules, or all-linear"));
  EXPECT_THAT(error_of_lora("    r: 8\n    target_modules: [up_proj, up_proj]\n"),
              HasSubstr("\"up_proj\" is listed twice"));
  EXPECT_THAT(error_of_lora("    r: 8\n    target_modules: []\n"), HasSubstr("names no modules"));
  EXPECT_THAT(error_of_lora("    r: 8\n    dropout: 0.1\n"), HasSubstr("have no dropout of their own"));
  EXPECT_THAT(error_of_lora("    r: 0\n"), HasSubstr("training.lora.r"));
  EXPECT_THAT(error_of_lora("    r: 8\n", "{layers: 2, hidden: 32, heads: 4, sequence: 8, vocabulary: 64}"),
              HasSubstr("name its directory in model.from"));
}

std::map<std::string, ParameterSpec> adapters_by_name(const ModelSpec& model, const LoraSpec& lora) {
  std::map<std::string, ParameterSpec> by_name;
  for (ParameterSpec& spec : adapter_parameters(model, lora, 2)) by_name[spec.name] = spec;
  return by_name;
}

TEST(LoraParameters, ThereIsOneAdapterPerStoredModule) {
  const LoraSpec lora{.r = 3, .alpha = 3, .target_modules = {"k_proj", "v_proj", "up_proj", "down_proj"}};
  const auto adapters = adapters_by_name(grouped_llama(), lora);
  ASSERT_EQ(adapters.size(), 8u);
  const ParameterSpec &a = adapters.at("2.qkv.k_proj.lora_A"), &b = adapters.at("2.qkv.k_proj.lora_B");
  EXPECT_EQ(std::pair(a.rows, a.columns), std::pair(int64_t{3}, int64_t{32}));
  EXPECT_EQ(std::pair(b.rows, b.columns), std::pair(int64_t{16}, int64_t{3})) << "two heads of eight";
  EXPECT_FALSE(a.sharded);
  EXPECT_TRUE(b.sharded);
  EXPECT_GT(a.deviation, 0);
  EXPECT_EQ(b.deviation, 0);
  EXPECT_EQ(b.stored.pieces.at(0).tensor, "model.layers.1.self_attn.k_proj.lora_B.weight");
  const ParameterSpec &in = adapters.at("2.down.down_proj.lora_A"),
                      &out = adapters.at("2.down.down_proj.lora_B");
  EXPECT_EQ(std::pair(in.rows, in.columns), std::pair(int64_t{48}, int64_t{3})) << "transposed";
  EXPECT_EQ(std::pair(out.rows, out.columns), std::pair(int64_t{32}, int64_t{3}));
  EXPECT_TRUE(in.sharded && in.stored.transposed);
  EXPECT_FALSE(out.sharded || out.stored.transposed);
}

TEST(LoraParameters, AModuleThatIsStoredInOnePieceHasOneAdapter) {
  ModelSpec model = grouped_llama();
  set_family(model, "phi3");
  model.kv_heads = 2;
  const LoraSpec lora{.r = 2, .alpha = 2, .target_modules = last_words(linear_modules(model))};
  EXPECT_THAT(lora.target_modules, ElementsAre("qkv_proj", "o_proj", "gate_up_proj", "down_proj"));
  const auto adapters = adapters_by_name(model, lora);
  EXPECT_EQ(adapters.at("2.qkv.qkv_proj.lora_B").rows, (4 + 2 * 2) * 8);
  EXPECT_EQ(adapters.at("2.gate_up.gate_up_proj.lora_B").rows, 2 * 48);
}

// r (inputs + outputs) per module, whatever the trainer keeps them in.
TEST(LoraParameters, NumberOfAllAdaptersFollowsFromTheStoredModules) {
  for (const auto& [label, model] : test::models_of_all_families()) {
    const LoraSpec lora{.r = 5, .alpha = 5, .target_modules = last_words(linear_modules(model))};
    int64_t expected = 0, listed = 0;
    for (const ParameterSpec& weight : list_parameters(model, model.vocabulary)) {
      if (weight.columns == 0 || weight.layer == 0 || weight.layer > model.layers) continue;
      std::map<std::string, int64_t> rows;  // by module
      for (const StoredPiece& piece : weight.stored.pieces)
        rows[piece.tensor] += piece.rows * weight.stored.groups;
      for (const auto& [tensor, count] : rows) expected += 5 * (count + weight.columns);
    }
    for (const ParameterSpec& adapter : trained_parameters(model, lora, model.vocabulary + 7))
      listed += adapter.elements();
    EXPECT_EQ(listed, expected) << label;
  }
}

TEST(TrainingFlops, FrozenWeightsHaveNoGradients) {
  const ModelSpec model = grouped_llama();
  const LoraSpec lora{.r = 3, .alpha = 3, .target_modules = {"q_proj"}};
  const TransformerShape shape = shape_of(model);
  EXPECT_EQ(training_flops_per_token(model, std::nullopt), training_flops_per_token(shape));
  const double frozen = static_cast<double>(2 * shape.block_parameters()) + 64 * 32,
               trained = 2 * 3 * (32 + 32);
  EXPECT_EQ(training_flops_per_token(model, lora),
            training_flops_per_token(shape) - 2 * frozen + 6 * trained);
}

}  // namespace
}  // namespace sailor
