#include "planner/spec/transformer_shape.h"

#include <gmock/gmock.h>

#include "planner/spec/model_family.h"
#include "tests/unit/planner/error_of.h"

namespace sailor {
namespace {

using ::testing::HasSubstr;

TransformerShape read_shape(const std::string& yaml) {
  const Document document = parse_yaml(yaml, "/d/shape.yaml");
  return read_transformer_shape(Field(document));
}

std::string shape_error(const std::string& yaml) {
  return test::error_of([&] { read_shape(yaml); });
}

const char* const kSmall =
    "{layers: 12, hidden: 768, heads: 12, sequence: 1024, vocabulary: 50257, tied_embeddings: true}";

TEST(TransformerShape, ParametersOfPublishedModels) {
  EXPECT_EQ(read_shape(kSmall).parameters(), 124'439'808);
  // Gated, no biases, no learned positions, an untied head.
  const std::string gated = "gated_mlp: true, biases: false, learned_positions: false, ";
  EXPECT_EQ(read_shape("{" + gated +
                       "layers: 32, hidden: 4096, heads: 32, feed_forward: 11008, sequence: 4096, "
                       "vocabulary: 32000}")
                .parameters(),
            6'738'415'616);
  // The same with fewer key and value heads than heads.
  EXPECT_EQ(read_shape("{" + gated +
                       "layers: 32, hidden: 4096, heads: 32, kv_heads: 8, feed_forward: 14336, "
                       "sequence: 8192, vocabulary: 128256}")
                .parameters(),
            8'030'261'248);
}

TEST(TransformerShape, WhatIsLeftOutFollowsFromTheRest) {
  const TransformerShape shape = read_shape(kSmall);
  EXPECT_EQ(shape.num_all_layers(), 14);
  EXPECT_EQ(shape.kv_heads, 12);
  EXPECT_EQ(shape.head_width, 64);
  EXPECT_EQ(shape.feed_forward, 3072);
  EXPECT_FALSE(shape.gated_mlp);
  EXPECT_TRUE(shape.tied_embeddings);
  EXPECT_TRUE(shape.learned_positions);
  EXPECT_TRUE(shape.biases);
  const TransformerShape wide = read_shape(
      "{layers: 2, hidden: 64, heads: 4, kv_heads: 2, head_width: 32, feed_forward: 100, sequence: 8, "
      "vocabulary: 10, biases: false}");
  // Attention is 4 x 32 = 128 wide, keys and values 64: 64 x (128 + 2 x 64) in, 128 x 64 out.
  EXPECT_EQ(wide.block_parameters(), 64 * 256 + 128 * 64 + 2 * 64 * 100 + 2 * 64);
  EXPECT_EQ(wide.embedding_parameters(), (10 + 8) * 64);
  EXPECT_EQ(wide.head_parameters(), 10 * 64 + 64);
}

TEST(TransformerShape, BrokenShapesAreErrorsWithTheirPlace) {
  EXPECT_THAT(shape_error("layers: 12\nhidden: 768\nheads: 12\nsequence: 1024\n"),
              HasSubstr("/d/shape.yaml:1: missing key \"vocabulary\""));
  EXPECT_THAT(shape_error("layers: 12\nhidden: 0\nheads: 12\nsequence: 1024\nvocabulary: 5\n"),
              HasSubstr("/d/shape.yaml:2: hidden: "));
  EXPECT_THAT(shape_error("layers: 12\nhiden: 768\n"),
              HasSubstr("unknown key \"hiden\", did you mean \"hidden\"?"));
  EXPECT_THAT(shape_error("{layers: 1, hidden: 4, heads: 8, sequence: 8, vocabulary: 8}"),
              HasSubstr("more heads than hidden elements"));
  EXPECT_THAT(shape_error("{layers: 1, hidden: 4, heads: 2, sequence: 8, vocabulary: 8, biases: 3}"),
              HasSubstr("biases: must be true or false"));
}

ModelSpec job_model(const std::string& family) {
  ModelSpec model;
  set_family(model, family);
  model.layers = 24;
  model.hidden = 1024;
  model.heads = 16;
  model.feed_forward = 4096;
  model.sequence = 2048;
  model.vocabulary = 50257;
  return model;
}

TEST(TransformerShape, FamiliesOfTheTrainer) {
  const TransformerShape first = shape_of(job_model("gpt2"));
  EXPECT_EQ(first.head_width, 64);
  EXPECT_EQ(first.kv_heads, 16);
  EXPECT_EQ(first.block_parameters(), 12 * 1024 * 1024 + 13 * 1024);
  const TransformerShape gated = shape_of(job_model("llama"));
  EXPECT_TRUE(gated.gated_mlp);
  EXPECT_FALSE(gated.biases);
  EXPECT_FALSE(gated.learned_positions);
  ModelSpec grouped = job_model("llama");
  grouped.kv_heads = 4;
  EXPECT_EQ(shape_of(grouped).block_parameters(),
            gated.block_parameters() - 2 * int64_t{1024} * (1024 - 4 * 64));
  ModelSpec local = job_model("gpt-neo");
  local.attention_window = 256;
  const TransformerShape windows = shape_of(local);
  EXPECT_EQ(windows.of_block(0).keys(), 2048);
  EXPECT_EQ(windows.of_block(1).keys(), 256);
  EXPECT_EQ(windows.block_parameters(), first.block_parameters() - 3 * 1024) << "no biases in attention";
  EXPECT_EQ(shape_of(job_model("opt")).embedding_parameters(), first.embedding_parameters() + 2 * 1024);
  ModelSpec tied = job_model("gpt2");
  tied.tied_embeddings = true;
  EXPECT_EQ(shape_of(tied).parameters(), first.parameters() - int64_t{50257} * 1024);
  EXPECT_THAT(test::error_of([] { shape_of(job_model("resnet")); }),
              HasSubstr("model family \"resnet\" has no known shape"));
}

}  // namespace
}  // namespace sailor
