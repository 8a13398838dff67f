#include "planner/spec/job_spec.h"

#include <gmock/gmock.h>

#include "planner/spec/error.h"
#include "planner/spec/overrides.h"
#include "planner/spec/text.h"

namespace sailor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const char kJob[] = R"(#!/usr/bin/env -S sailor run
#SBATCH --job-name=test
model: {family: gpt, layers: 4, hidden: 64, heads: 4, sequence: 128, vocabulary: 256}
training:
  global_batch: 16
  steps: 10
  optimizer: {name: adamw, lr: 3.0e-4}
data: {train: text.bin, format: nanogpt}
resources: {max_gpus: {big: 4}, zones: [z1]}
constraints: {max_usd_per_iteration: 1.2 USD}
checkpoint: {directory: /tmp/c, every_steps: 5}
elastic: {enabled: true}
)";

std::string with(std::string from, const std::string& to) {
  std::string text = kJob;
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string error_of(const std::string& yaml) {
  try {
    parse_job_spec(yaml, "job.yaml");
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(JobSpec, ABatchScriptIsAJobSpec) {
  JobSpec job = parse_job_spec(kJob, "job.yaml");
  EXPECT_EQ(job.model.name, "gpt-4x64");
  EXPECT_EQ(job.model.feed_forward, 256);
  EXPECT_EQ(job.model.num_all_layers(), 6);
  EXPECT_EQ(job.training.global_batch, 16);
  EXPECT_EQ(job.training.precision, Precision::fp32);
  EXPECT_DOUBLE_EQ(job.training.optimizer.lr, 3e-4);
  EXPECT_EQ(job.resources.max_gpus.at("big"), 4);
  EXPECT_THAT(job.resources.zones, ElementsAre("z1"));
  EXPECT_DOUBLE_EQ(*job.constraints.max_usd_per_iteration, 1.2);
  EXPECT_EQ(job.checkpoint.keep, 3);
  EXPECT_TRUE(job.elastic.enabled);
  EXPECT_FALSE(job.objective_given);
  EXPECT_EQ(job.where("resources.max_gpus.big").text(), "job.yaml:9");
  EXPECT_EQ(job.where("resources.zones[0]").text(), "job.yaml:9");
}

TEST(JobSpec, UnknownKeysNameTheNearestKnownOne) {
  EXPECT_EQ(error_of(with("layers:", "layerz:")),
            "job.yaml:3: model: unknown key \"layerz\", did you mean \"layers\"?");
  EXPECT_THAT(error_of(with("elastic:", "xyzzyx:")),
              HasSubstr("unknown key \"xyzzyx\" (known: model, training"));
}

TEST(JobSpec, EveryErrorNamesLineAndKey) {
  EXPECT_EQ(error_of(with("layers: 4", "layers: 10000")),
            "job.yaml:3: model.layers: must be an integer from 1 to 1024, is \"10000\"");
  EXPECT_EQ(error_of(with("global_batch: 16", "global_batch: -1")),
            "job.yaml:5: training.global_batch: must be an integer from 1 to 1000000000, is \"-1\"");
  EXPECT_EQ(error_of(with("global_batch: 16", "global_batch: many")),
            "job.yaml:5: training.global_batch: must be an integer from 1 to 1000000000, is \"many\"");
  EXPECT_EQ(error_of(with("  steps: 10\n", "")), "job.yaml:5: training: missing key \"steps\"");
  EXPECT_THAT(error_of(with("steps: 10", "steps: 99999999999999999999999")),
              HasSubstr("job.yaml:6: training.steps: the number"));
  EXPECT_THAT(error_of(with("3.0e-4", ".nan")), HasSubstr("training.optimizer.lr: must be a finite number"));
  EXPECT_THAT(error_of(with("3.0e-4", ".inf")), HasSubstr("training.optimizer.lr: must be a finite number"));
  EXPECT_THAT(error_of(with("heads: 4", "heads: 5")),
              HasSubstr("hidden (64) must be a multiple of heads (5)"));
  EXPECT_THAT(error_of(with("name: adamw", "name: adamv")), HasSubstr("did you mean \"adamw\"?"));
  EXPECT_THAT(error_of(with("{enabled: true}", "{enabled: \"true\"}")), HasSubstr("must be true or false"));
  EXPECT_THAT(error_of(with("zones: [z1]", "zones: z1")), HasSubstr("resources.zones: must be a list"));
  EXPECT_THAT(error_of(with("{big: 4}", "{big: 4.5}")),
              HasSubstr("resources.max_gpus.big: must be an integer"));
  EXPECT_THAT(error_of(with("family: gpt", "from: /models/x, family: gpt")), HasSubstr("model.from: "));
  EXPECT_THAT(error_of("just text\n"), HasSubstr("job.yaml:1: must be a map"));
}

TEST(JobSpec, NumbersInQuotesAreTexts) {
  EXPECT_THAT(error_of(with("steps: 10", "steps: \"10\"")), HasSubstr("is the text \"10\""));
}

TEST(Overrides, ChangeOnlyWhatTheyName) {
  JobSpec job = parse_job_spec(kJob, "job.yaml");
  PlanOverrides overrides;
  overrides.objective = parse_objective_option("cost", "--objective");
  overrides.max_gpus = parse_max_gpus("big=2,small=8", "--max-gpus");
  overrides.zones = parse_name_list("z2,z3", "--zones");
  apply(overrides, job);
  EXPECT_EQ(job.objective, Objective::cost);
  EXPECT_EQ(job.resources.max_gpus, (std::map<std::string, int>{{"big", 2}, {"small", 8}}));
  EXPECT_THAT(job.resources.zones, ElementsAre("z2", "z3"));
  EXPECT_DOUBLE_EQ(*job.constraints.max_usd_per_iteration, 1.2);
}

TEST(Overrides, BadValuesNameTheOption) {
  for (const char* bad :
       {"", "big", "big=", "=3", "big=-1", "big=1,,small=2", "big=1,big=2", "big=1x", "big=99999999999"}) {
    EXPECT_THROW(parse_max_gpus(bad, "--max-gpus"), InputError) << bad;
  }
  EXPECT_THROW(parse_max_cost("-1", "--max-cost"), InputError);
  EXPECT_THROW(parse_max_cost("0", "--max-cost"), InputError);
  EXPECT_THROW(parse_min_throughput("inf", "--min-throughput"), InputError);
  EXPECT_THROW(parse_time_limit("soon", "--time-limit"), InputError);
  EXPECT_DOUBLE_EQ(parse_time_limit("500ms", "--time-limit"), 0.5);
  try {
    parse_objective_option("thruput", "--objective");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "--objective: must be throughput or cost, is \"thruput\", did you mean \"throughput\"?");
  }
}

TEST(Text, NearestIsASlipOfTheHandNotAGuess) {
  EXPECT_EQ(nearest("layerz", {"hidden", "layers", "heads"}), "layers");
  EXPECT_EQ(nearest("lyaers", {"hidden", "layers", "heads"}), "layers");
  EXPECT_EQ(nearest("BIG", {"big", "small"}), "big");
  EXPECT_EQ(nearest("xyzzy", {"hidden", "layers", "heads"}), "");
  EXPECT_EQ(nearest("x", {}), "");
}

TEST(Text, QuotingKeepsOneLine) {
  EXPECT_EQ(in_quotes("a\nb\x01"), "\"a\\nb\\x01\"");
  EXPECT_LT(in_quotes(std::string(1000, 'x')).size(), 70u);
}

}  // namespace
}  // namespace sailor
