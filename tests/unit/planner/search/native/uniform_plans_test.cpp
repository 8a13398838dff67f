// Plans for training programs that are not Sailor's own: only what their frameworks run, and of that the
// best.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "planner/inputs/load_inputs.h"
#include "planner/inputs/search_request.h"
#include "planner/plan/feature_text.h"
#include "planner/plan/validate.h"
#include "planner/report/framework_config.h"
#include "planner/report/megatron_flags.h"

namespace sailor {
namespace {

struct NodesOfType {
  const char* gpu_type;
  int nodes, gpus;
};

struct UniformCase {
  const char* kind;
  std::string model;
  int global_batch;
  std::vector<NodesOfType> cluster;
};

const char* const kSmallGpt =
    "family: gpt2, layers: 12, hidden: 768, heads: 12, sequence: 1024, vocabulary: 50304";
std::string llama_8b(int sequence) {
  return fmt::format(
      "family: llama, layers: 32, hidden: 4096, heads: 32, kv_heads: 8, feed_forward: 14336, sequence: {}, "
      "vocabulary: 128256",
      sequence);
}

PlanningInputs inputs_of(const UniformCase& of, const char* precision = "fp16") {
  std::string yaml = "sailor_snapshot: 1\nnodes:\n";
  for (const NodesOfType& nodes : of.cluster)
    yaml += fmt::format("  - {{name: {0}-, count: {1}, zone: z, gpu_type: {0}, gpus: {2}}}\n", nodes.gpu_type,
                        nodes.nodes, nodes.gpus);
  const JobSpec job =
      parse_job_spec(fmt::format("model: {{{}}}\ntraining: {{global_batch: {}, precision: {}, steps: 1}}\n"
                                 "trainer: {{kind: {}, command: [python, train.py]}}\n",
                                 of.model, of.global_batch, precision, of.kind),
                     "job");
  return load_inputs(job, SiteConfig{}, {},
                     [&](const SiteConfig&) { return parse_snapshot(yaml, "cluster"); });
}

void expect_uniform(const Plan& plan) {
  const PlanPipeline& first = plan.pipelines.front();
  EXPECT_EQ(plan.global_batch,
            int64_t{plan.microbatch} * first.microbatches * static_cast<int64_t>(plan.pipelines.size()));
  for (const PlanPipeline& pipeline : plan.pipelines) {
    EXPECT_EQ(pipeline.microbatches, first.microbatches);
    ASSERT_EQ(pipeline.stages.size(), first.stages.size());
    for (size_t i = 0; i < first.stages.size(); ++i) {
      EXPECT_EQ(pipeline.stages[i].shape, first.stages[0].shape);
      EXPECT_EQ(pipeline.stages[i].end_layer, first.stages[i].end_layer);
      EXPECT_EQ(pipeline.stages[i].recompute, first.stages[i].recompute);
    }
  }
}

class UniformPlans : public testing::TestWithParam<UniformCase> {};

TEST_P(UniformPlans, AreAllThatIsOffered) {
  const PlanningInputs inputs = inputs_of(GetParam());
  const SearchResult result = search(inputs.context(), plan_options({}, inputs.site));
  ASSERT_EQ(result.status, SearchStatus::found) << result.reason;
  EXPECT_TRUE(result.stats.complete);
  for (const Candidate& candidate : result.candidates) {
    expect_uniform(candidate.plan);
    EXPECT_TRUE(check_plan(candidate.plan, inputs.job).empty());
    if (GetParam().kind == std::string("megatron-core")) {
      EXPECT_EQ(megatron_flags(inputs.job, candidate.plan).why_not, "");
    }
    EXPECT_TRUE(candidate.prediction.fits);
    const PlanPipeline& first = candidate.plan.pipelines.front();
    const auto within = [](size_t value, int limit) {
      return limit == 0 || value <= static_cast<size_t>(limit);
    };
    EXPECT_TRUE(within(first.stages.size(), inputs.framework.max_stages));
    EXPECT_TRUE(within(static_cast<size_t>(first.stages[0].shape.tp), inputs.framework.max_tensor_parallel));
  }
  EXPECT_GE(result.candidates[0].prediction.iteration_s, *result.bound_iteration_s);
}

// Equal stages of consecutive GPUs of one type: by hand, as Megatron's users do.
std::optional<Plan> by_hand(const PlanningInputs& inputs, const NodesOfType& of, int tp, int stages,
                            int pipelines, int microbatch, bool by_stage) {
  const int layers = inputs.job.model.layers;
  const int64_t total = inputs.job.training.global_batch / microbatch;
  if (layers % stages != 0 || total % pipelines != 0 || tp > of.gpus) return std::nullopt;
  Plan plan;
  plan.model = inputs.job.model.name;
  plan.global_batch = inputs.job.training.global_batch;
  plan.microbatch = microbatch;
  const int per_node = of.gpus / tp;
  for (int d = 0; d < pipelines; ++d) {
    PlanPipeline& pipeline = plan.pipelines.emplace_back();
    pipeline.microbatches = static_cast<int>(total / pipelines);
    for (int s = 0; s < stages; ++s) {
      const int replica = by_stage ? s * pipelines + d : d * stages + s;
      if (replica / per_node >= of.nodes) return std::nullopt;
      PlanStage& stage = pipeline.stages.emplace_back();
      stage.first_layer = s == 0 ? 0 : 1 + s * layers / stages;
      stage.end_layer = s + 1 == stages ? layers + 2 : 1 + (s + 1) * layers / stages;
      stage.gpu_type = of.gpu_type;
      stage.zone = "z";
      stage.shape.tp = tp;
      stage.node = fmt::format("{}-{}", of.gpu_type, replica / per_node + 1);
      for (int gpu = 0; gpu < tp; ++gpu) stage.gpus.push_back(replica % per_node * tp + gpu);
    }
  }
  return plan;
}

TEST_P(UniformPlans, AreNoSlowerThanPlansMadeByHand) {
  const PlanningInputs inputs = inputs_of(GetParam());
  const SearchResult result = search(inputs.context(), plan_options({}, inputs.site));
  ASSERT_EQ(result.status, SearchStatus::found);
  const int most_tp = inputs.framework.max_tensor_parallel == 1 ? 1 : 8;
  const int most_stages = inputs.framework.max_stages == 1 ? 1 : 16;
  int tried = 0;
  double best_s = kNever;
  for (const NodesOfType& of : GetParam().cluster)
    for (int tp = 1; tp <= most_tp; tp *= 2)
      for (int stages = 1; stages <= most_stages; stages *= 2)
        for (int pipelines = 1; pipelines * stages * tp <= of.nodes * of.gpus; pipelines *= 2)
          for (const int microbatch : {1, 2, 4, 8})
            for (const bool by_stage : {false, true}) {
              std::optional<Plan> plan = by_hand(inputs, of, tp, stages, pipelines, microbatch, by_stage);
              if (!plan) continue;
              const bool shards = inputs.framework.may_shard_optimizer;
              const bool recomputes = inputs.framework.may_recompute;
              for (const auto& [zero, recompute] :
                   {std::pair(Zero::none, Recompute::none), std::pair(Zero::optimizer, Recompute::none),
                    std::pair(Zero::none, Recompute::full), std::pair(Zero::optimizer, Recompute::full)}) {
                if ((zero != Zero::none && !shards) || (recompute != Recompute::none && !recomputes))
                  continue;
                plan->zero = zero;
                for (PlanPipeline& pipeline : plan->pipelines)
                  for (PlanStage& stage : pipeline.stages) stage.recompute = recompute;
                const Prediction prediction = simulate(inputs.context(), *plan, CostModel::native);
                ++tried;
                if (prediction.fits) best_s = std::min(best_s, prediction.iteration_s);
              }
            }
  EXPECT_GT(tried, 3);
  EXPECT_LT(best_s, kNever);
  EXPECT_LE(result.candidates[0].prediction.iteration_s, 1.001 * best_s);
}

INSTANTIATE_TEST_SUITE_P(
    Frameworks, UniformPlans,
    testing::Values(UniformCase{"torchrun", kSmallGpt, 256, {{"A100-40", 2, 4}}},
                    UniformCase{"accelerate", kSmallGpt, 96, {{"A100-40", 1, 8}, {"H100-80", 1, 4}}},
                    UniformCase{"deepspeed", kSmallGpt, 512, {{"V100-32", 4, 4}}},
                    UniformCase{"fsdp", llama_8b(4096), 256, {{"H100-80", 2, 8}, {"A100-80", 2, 8}}},
                    UniformCase{"fsdp", llama_8b(4096), 64, {{"A100-40", 1, 8}}},
                    UniformCase{"deepspeed-zero3", llama_8b(4096), 128, {{"L40S-48", 4, 8}}},
                    UniformCase{"hsdp", llama_8b(4096), 128, {{"L40S-48", 4, 8}}},
                    UniformCase{"megatron-core", llama_8b(4096), 128, {{"A100-80", 4, 8}}},
                    UniformCase{"megatron-core", llama_8b(4096), 64, {{"A100-40", 2, 8}}},
                    UniformCase{
                        "megatron-core", llama_8b(4096), 256, {{"H100-80", 2, 8}, {"A100-80", 2, 8}}}));

// GPUs of two types side by side, as many ranks of each as there are: with equal shares the slower set the
// pace, and are still worth it when they are nearly as fast.
TEST(UniformPlansOfTwoTypes, UseBothWhereThatPays) {
  const PlanningInputs inputs =
      inputs_of({"torchrun", kSmallGpt, 512, {{"A100-40", 1, 8}, {"A100-80", 1, 8}}});
  const SearchResult result = search(inputs.context(), plan_options({}, inputs.site));
  ASSERT_EQ(result.status, SearchStatus::found);
  expect_uniform(result.candidates[0].plan);
  EXPECT_EQ(gpu_types_of(result.candidates[0].plan).size(), 2u);
  EXPECT_EQ(num_ranks(result.candidates[0].plan), 16);
}

Candidate best_plan(const PlanningInputs& inputs, const PlanOptions& options) {
  SearchResult result = search(inputs.context(), options);
  EXPECT_EQ(result.status, SearchStatus::found) << result.reason;
  if (result.bound_iteration_s) {
    EXPECT_GE(result.candidates[0].prediction.iteration_s, *result.bound_iteration_s);
  }
  return result.candidates.at(0);
}

// Memory lacks for a few blocks only.
TEST(UniformPlansOfSomeBlocks, AreFasterThanThoseThatRecomputeAll) {
  struct Case {
    const char* kind;
    int sequence, global_batch;
  };
  for (const auto& [kind, sequence, batch] :
       {Case{"megatron-core", 8192, 128}, Case{"torchtitan", 65536, 16}}) {
    PlanningInputs inputs = inputs_of({kind, llama_8b(sequence), batch, {{"A100-40", 4, 8}}}, "bf16");
    PlanOptions options = plan_options({}, inputs.site);
    options.allow.erase(PlanFeature::context_parallel);
    options.allow.erase(PlanFeature::interleave);
    const Candidate some = best_plan(inputs, options);
    const auto has_some = [](const PlanStage& stage) { return stage.recompute.deep_blocks() > 0; };
    EXPECT_TRUE(std::ranges::any_of(some.plan.pipelines[0].stages, has_some)) << kind;
    inputs.framework.recompute_some = FrameworkStyle::SomeBlocks::none;
    const Candidate all = best_plan(inputs, options);
    EXPECT_LT(some.prediction.iteration_s, 0.99 * all.prediction.iteration_s) << kind;
  }
}

// Nodes whose GPUs are linked a hundred times as fast as they are.
TEST(UniformPlansOfGroups, ShareStatesWithinNodesWhereLinksBetweenThemAreSlow) {
  PlanningInputs inputs = inputs_of({"hsdp", llama_8b(4096), 1024, {{"A100-80", 4, 8}}});
  inputs.profiles.network = {};
  for (const auto& [scope, rate] : {std::pair(NetworkProfile::Scope::intra_node, 2e11),
                                    std::pair(NetworkProfile::Scope::inter_node, 2e9)})
    inputs.profiles.network.add({{"", "", 0}, {"", "", 0}, scope, LinkCurve::from_rates(1e-5, rate, rate)});
  PlanOptions options = plan_options({}, inputs.site);
  const Candidate groups = best_plan(inputs, options);
  EXPECT_EQ(groups.plan.zero_group, 8);
  EXPECT_EQ(groups.plan.zero, Zero::parameters);
  const FrameworkConfig config = accelerate_config(inputs.job, groups.plan);
  EXPECT_NE(config.text.find("dp_replicate_size: 4\n"), std::string::npos) << config.why_not << config.text;
  EXPECT_NE(config.text.find("dp_shard_size: 8\n"), std::string::npos);
  options.allow.erase(PlanFeature::hybrid_zero);
  const Candidate one = best_plan(inputs, options);
  EXPECT_EQ(one.plan.zero_group, 0);
  EXPECT_LT(groups.prediction.iteration_s, 0.8 * one.prediction.iteration_s);
}

TEST(UniformPlansOfLongSequences, SplitTokens) {
  const PlanningInputs inputs =
      inputs_of({"megatron-core", llama_8b(65536), 16, {{"A100-80", 1, 8}}}, "bf16");
  PlanOptions options = plan_options({}, inputs.site);
  const Candidate split = best_plan(inputs, options);
  EXPECT_TRUE(has_context_parallelism(split.plan));
  const MegatronFlags flags = megatron_flags(inputs.job, split.plan);
  EXPECT_THAT(flags.flags, testing::Contains("--cp-comm-type a2a")) << flags.why_not;
  options.allow.erase(PlanFeature::context_parallel);
  EXPECT_LT(split.prediction.iteration_s, best_plan(inputs, options).prediction.iteration_s);
}

TEST(UniformPlansOfLongSequences, SplitTokensOfEachHeadWhereThereAreFewHeads) {
  std::string few_heads = llama_8b(131072);
  few_heads.replace(few_heads.find("kv_heads: 8"), 11, "kv_heads: 4");
  const PlanningInputs inputs = inputs_of({"megatron-core", few_heads, 8, {{"A100-80", 1, 8}}}, "bf16");
  const Candidate split = best_plan(inputs, plan_options({}, inputs.site));
  const PlanStage& stage = split.plan.pipelines[0].stages[0];
  EXPECT_EQ(stage.shape.gpus(), 8);
  EXPECT_EQ(inputs.job.model.ring_degree(stage.shape), 2);
  const MegatronFlags flags = megatron_flags(inputs.job, split.plan);
  const bool by_heads = stage.shape.cp > 2;
  EXPECT_THAT(flags.flags, testing::Contains(by_heads ? "--cp-comm-type a2a+p2p" : "--cp-comm-type p2p"))
      << flags.why_not;
  const std::string degrees = fmt::format("--hierarchical-context-parallel-sizes {} 2", stage.shape.cp / 2);
  EXPECT_EQ(std::count(flags.flags.begin(), flags.flags.end(), degrees), by_heads ? 1 : 0);
  EXPECT_NE(nemo_config(inputs.job, split.plan).why_not, "");
}

TEST(UniformPlansOfThePublishedModel, DoNotExist) {
  const PlanningInputs inputs = inputs_of({"torchrun", kSmallGpt, 256, {{"A100-40", 2, 4}}});
  PlanOptions options = plan_options({}, inputs.site);
  options.cost_model = CostModel::published;
  EXPECT_THROW(search(inputs.context(), options), InputError);
}

}  // namespace
}  // namespace sailor
