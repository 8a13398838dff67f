#include "planner/spec/parameter_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/spec/job_spec.h"
#include "planner/spec/lora_parameters.h"
#include "planner/spec/model_family.h"
#include "tests/unit/planner/error_of.h"
#include "tests/unit/planner/scratch.h"

namespace sailor {
namespace {

using ::testing::HasSubstr;
using ::testing::Key;
using ::testing::UnorderedElementsAre;

ModelSpec model_of(const std::string& family) {
  ModelSpec model;
  set_family(model, family);
  model.layers = 2;
  model.hidden = model.feed_forward = 16;
  model.heads = 2;
  model.sequence = model.positions = model.vocabulary = 16;
  return model;
}

std::string problem_of(const std::vector<ParameterGroup>& groups, const std::string& family = "llama") {
  const auto problem = find_problem(groups, model_of(family), std::nullopt);
  return problem ? std::to_string(problem->group) + ": " + problem->text : "";
}

TEST(ParameterGroups, MatchTheNamesOfModelDirectories) {
  const auto names = [](const std::string& family, const std::string& pattern) {
    return groups_by_parameter({{pattern, 0.5}}, model_of(family), std::nullopt);
  };
  EXPECT_THAT(names("llama", "model.layers.1.mlp.down_proj.weight"),
              UnorderedElementsAre(Key("2.down.weight")));
  EXPECT_THAT(names("llama", "*.self_attn.[qkv]_proj.weight"),
              UnorderedElementsAre(Key("1.qkv.weight"), Key("2.qkv.weight")));
  EXPECT_THAT(names("gpt2", "*.ln_?.bias"),
              UnorderedElementsAre(Key("1.norm1.bias"), Key("1.norm2.bias"), Key("2.norm1.bias"),
                                   Key("2.norm2.bias"), Key("3.norm.bias")));
  EXPECT_THAT(names("gpt2", "*.h.0.attn.c_attn.weight"), UnorderedElementsAre(Key("1.qkv.weight")));
}

TEST(ParameterGroups, TheFirstThatMatchesApplies) {
  const std::vector<ParameterGroup> groups = {{"*layers.0.*", 0.5}, {"*norm.weight", 2, 0.1}};
  EXPECT_EQ(problem_of(groups), "");
  const auto of = groups_by_parameter(groups, model_of("llama"), std::nullopt);
  EXPECT_EQ(of.at("1.norm1.weight"), groups[0]);
  EXPECT_EQ(of.at("2.norm1.weight"), groups[1]);
  EXPECT_EQ(of.at("3.norm.weight"), groups[1]);
  EXPECT_FALSE(of.contains("2.qkv.weight"));
}

TEST(ParameterGroups, OneWithoutEffectIsAProblemThatNamesNearNames) {
  EXPECT_EQ(problem_of({{"*.weight", 0.5}, {"model.layers.*.mlp.up_prj.weight", 0.5}}),
            "1: \"model.layers.*.mlp.up_prj.weight\" matches no parameter that is trained, did you mean "
            "\"model.layers.*.mlp.up_proj.weight\"?");
  EXPECT_THAT(problem_of({{"*.wieght", 0.5}}), HasSubstr("did you mean \"*.weight\"?"));
  EXPECT_THAT(problem_of({{"transformer.wte", 0.5}}), HasSubstr("their names are those of model directories, "
                                                                "such as \"lm_head.weight\""));
  EXPECT_THAT(problem_of({{"*.weight", 0.5}, {"*norm.weight", 0.1}}),
              HasSubstr("1: \"*norm.weight\" matches only parameters of groups before it"));
}

TEST(ParameterGroups, ApplyToWholeMatricesOfTheTrainer) {
  EXPECT_EQ(
      problem_of({{"*.k_proj.weight", 0.5}}),
      "0: applies to \"model.layers.0.self_attn.k_proj.weight\" and not to "
      "\"model.layers.0.self_attn.q_proj.weight\", but the trainer keeps both in one tensor; match both");
  EXPECT_THAT(problem_of({{"*norm.weight", 2}, {"*.gate_proj.weight", 0.5}, {"*.up_proj.weight", 0.4}}),
              HasSubstr("applies to \"model.layers.0.mlp.gate_proj.weight\" and not to"));
  EXPECT_EQ(problem_of({{"*.gate_proj.weight", 0.5}, {"*.up_proj.weight", 0.5}}), "");  // the same settings
  EXPECT_EQ(problem_of({{"*.c_attn.weight", 0.5}}, "gpt2"), "");
}

TEST(ParameterGroups, WithAdaptersTheyMatchAdapters) {
  const LoraSpec lora{.r = 2, .target_modules = {"q_proj", "v_proj"}};
  const ModelSpec model = model_of("llama");
  EXPECT_EQ(groups_by_parameter({{"*.lora_B.weight", 16}}, model, lora).size(), 4u);
  EXPECT_TRUE(find_problem({{"*.k_proj.weight", 2}}, model, lora));
  EXPECT_FALSE(find_problem({{"*.q_proj.lora_A.weight", 2}}, model, lora));
}

// Whatever the family calls it, a pattern of all names is a group of all parameters.
TEST(ParameterGroups, AllParametersOfAllFamiliesHaveNames) {
  for (const std::string& family : known_families()) {
    const ModelSpec model = model_of(family);
    EXPECT_EQ(problem_of({{"*", 0.5}}, family), "") << family;
    EXPECT_EQ(groups_by_parameter({{"*", 0.5}}, model, std::nullopt).size(),
              trained_parameters(model, std::nullopt, model.vocabulary).size())
        << family;
  }
}

TEST(ParameterGroups, AJobSpecNamesTheLineOfAPattern) {
  const auto job = [](const std::string& groups) {
    return "model: {family: gpt2, layers: 2, hidden: 16, heads: 2, sequence: 8, vocabulary: 32}\n"
           "training:\n  global_batch: 4\n  steps: 10\n  optimizer:\n    groups:\n" +
           groups;
  };
  const JobSpec read = parse_job_spec(
      job("      - {match: '*.bias', lr_scale: 0.1}\n      - {match: '*.wpe.*', weight_decay: 0}\n"),
      "job.yaml");
  EXPECT_EQ(read.training.optimizer.groups,
            (std::vector<ParameterGroup>{{"*.bias", 0.1, std::nullopt}, {"*.wpe.*", 1, 0.0}}));
  const auto error = [&](const std::string& groups) {
    return test::error_of([&] { parse_job_spec(job(groups), "job.yaml"); });
  };
  EXPECT_THAT(
      error("      - {match: '*.bias', lr_scale: 0.1}\n      - {match: '*.bais', lr_scale: 0.1}\n"),
      HasSubstr("job.yaml:8: training.optimizer.groups[1].match: \"*.bais\" matches no parameter that "
                "is trained, did you mean \"*.bias\"?"));
  EXPECT_THAT(error("      - {match: '*.bias'}\n"),
              HasSubstr("changes nothing; add lr_scale or weight_decay"));
  EXPECT_THAT(error("      - {lr_scale: 2}\n"), HasSubstr("missing key \"match\""));
  EXPECT_THAT(error("      []\n"), HasSubstr("lists no groups; omit the key"));
  EXPECT_THAT(error("      - {match: '*', lr_scale: -1}\n"),
              HasSubstr("training.optimizer.groups[0].lr_scale"));
}

}  // namespace
}  // namespace sailor
