#include "planner/spec/model_family.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "planner/spec/job_schema.h"
#include "planner/spec/model_directory.h"
#include "planner/spec/transformer_shape.h"
#include "tests/unit/planner/error_of.h"
#include "tests/unit/planner/family_models.h"

namespace sailor {
namespace {

using ::testing::HasSubstr;

int64_t elements(const ModelSpec& model, int layer) {
  int64_t sum = 0;
  for (const ParameterSpec& parameter : layer_parameters(model, layer, model.vocabulary))
    if (!parameter.tied_copy) sum += parameter.elements();
  return sum;
}

TEST(ModelFamilies, ShapesCountTheListedParameters) {
  for (const auto& [label, model] : test::models_of_all_families()) {
    const TransformerShape shape = shape_of(model);
    EXPECT_EQ(shape.embedding_parameters(), elements(model, 0)) << label;
    EXPECT_EQ(shape.block_parameters(), elements(model, 1)) << label;
    EXPECT_EQ(shape.head_parameters(), elements(model, model.layers + 1)) << label;
    int64_t all = 0;
    for (const ParameterSpec& parameter : list_parameters(model, model.vocabulary))
      all += parameter.elements();
    EXPECT_EQ(shape.parameters(), all) << label;
  }
}

TEST(ModelFamilies, EveryParameterIsStoredOnce) {
  for (const auto& [label, model] : test::models_of_all_families()) {
    std::set<std::string> names;
    std::map<std::string, int> layers_of;  // of a stored tensor
    for (const ParameterSpec& parameter : list_parameters(model, model.vocabulary + 5)) {
      EXPECT_TRUE(names.insert(parameter.name).second) << label << " " << parameter.name;
      int64_t rows = 0;
      for (const StoredPiece& piece : parameter.stored.pieces) {
        rows += piece.rows * parameter.stored.groups;
        const auto [owner, is_new] = layers_of.emplace(piece.tensor, parameter.layer);
        EXPECT_EQ(owner->second, parameter.layer) << label << " " << piece.tensor;
      }
      EXPECT_EQ(rows, parameter.real_rows) << label << " " << parameter.name;
    }
  }
}

TEST(ModelFamilies, ConfigFilesGiveTheModelBack) {
  for (const auto& [label, model] : test::models_of_all_families()) {
    if (model.positions > model.sequence) continue;  // such a model is made for longer sequences
    const std::string json = to_model_config(model, "float32");
    ModelSpec read = parse_model_config(json, "config.json");
    if (model.attention_window == 0) read.window_pattern = model.window_pattern;
    if (model.rotary_original_positions == 0) read.rotary_original_positions = 0;
    EXPECT_EQ(read.key_value_heads(), model.key_value_heads()) << label;
    EXPECT_EQ(read.position_rows(), model.position_rows()) << label;
    read.kv_heads = model.kv_heads;
    read.positions = model.positions;
    EXPECT_EQ(read, model) << label << "\n" << json;
  }
}

TEST(ModelFamilies, JobSpecsHaveTheKeysOfTheirFamilyOnly) {
  for (const ModelFamily& family : model_families()) {
    const std::string shape =
        "family: " + family.name + ", layers: 2, hidden: 64, heads: 4, sequence: 9, vocabulary: 19";
    const auto model_of = [&](const std::string& more) {
      return parse_job_spec("model: {" + shape + more + "}\ntraining: {global_batch: 1, steps: 1}\n", "j")
          .model;
    };
    ModelSpec plain = model_of("");
    plain.feed_forward = 96;
    plain.name.clear();
    EXPECT_EQ(plain, test::models_of(family).front().model) << family.name;
    for (const ModelKey& key : all_model_keys()) {
      const std::string error =
          test::error_of([&] { model_of(", " + key.name + ": " + test::value_of(key)); });
      if (family.has(key.name)) {
        EXPECT_EQ(error, "no error") << family.name;
      } else {
        EXPECT_THAT(error, HasSubstr("model." + key.name + ": models of family \"" + family.name +
                                     "\" have no such thing"));
      }
    }
  }
}

TEST(ModelFamilies, TheSchemaOfJobSpecsKnowsThemAndTheirKeys) {
  const auto schema = nlohmann::json::parse(job_schema_json());
  const auto& model = schema["properties"]["model"];
  const auto& properties = model["properties"];
  const auto& not_with_from = model["oneOf"][1]["properties"];
  for (const ModelFamily& family : model_families()) {
    EXPECT_THAT(properties["family"]["description"].get<std::string>(), HasSubstr("`" + family.name + "`"));
    for (const std::string& name : family.keys) {
      const ModelKey& key = *find_model_key(name);
      ASSERT_TRUE(properties.contains(key.name)) << key.name;
      EXPECT_EQ(not_with_from.value(key.name, true), false) << key.name;
      if (test::is_number(key)) {
        const double least =
            properties[key.name].value("minimum", properties[key.name].value("exclusiveMinimum", -1.0));
        EXPECT_EQ(least, key.least) << key.name;
      }
    }
  }
}

TEST(ModelFamilies, AnUnknownOneIsAnErrorThatListsTheKnownOnes) {
  EXPECT_EQ(find_family("nothing"), nullptr);
  const std::string error = test::error_of([] { model_family("nothing"); });
  for (const ModelFamily& family : model_families()) EXPECT_THAT(error, HasSubstr(family.name));
}

// As the first models of the family were published: rotary settings as top-level keys, without a map.
TEST(GptNeox, ReadsOlderConfigFiles) {
  const ModelSpec model = parse_model_config(
      R"({"architectures": ["GPTNeoXForCausalLM"], "hidden_act": "gelu", "hidden_size": 512,
          "intermediate_size": 2048, "layer_norm_eps": 1e-05, "max_position_embeddings": 2048,
          "model_type": "gpt_neox", "num_attention_heads": 8, "num_hidden_layers": 6, "rotary_emb_base": 5000,
          "rotary_pct": 0.125, "tie_word_embeddings": false, "use_parallel_residual": true,
          "vocab_size": 50304})",
      "config.json");
  EXPECT_EQ(model.rotary_base, 5000);
  EXPECT_EQ(model.rotary_fraction, 0.125);
  EXPECT_TRUE(model.parallel_residual);
  EXPECT_EQ(model.positions, 2048);
  EXPECT_EQ(shape_of(model).parameters(), 70'426'624) << "as published";
}

TEST(GptNeox, RotatesAnEvenNumberOfElements) {
  const auto error_with = [](const std::string& keys) {
    return test::error_of([&] {
      parse_job_spec(
          "model: {family: gpt-neox, layers: 2, hidden: 64, heads: 4, sequence: 9, vocabulary: 19" + keys +
              "}\ntraining: {global_batch: 1, steps: 1}\n",
          "job.yaml");
    });
  };
  EXPECT_EQ(error_with(", rotary_fraction: 0.5, parallel_residual: false"), "no error");
  EXPECT_THAT(error_with(", rotary_fraction: 0.2"),
              HasSubstr("job.yaml:1: model.rotary_fraction: 0.2 of heads of 16 elements is 3; it must be an "
                        "even number, at least 2"));
  EXPECT_THAT(error_with(", rotary_fraction: 0"), HasSubstr("model.rotary_fraction: "));
  EXPECT_THAT(error_with(", positions: 9"), HasSubstr("have no such thing"));
}

}  // namespace
}  // namespace sailor
