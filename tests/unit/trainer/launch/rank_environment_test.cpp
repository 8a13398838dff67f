// The environment of ranks of other training programs: what torchrun sets, in the order of the framework.
#include "trainer/launch/rank_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace sailor {
namespace {

using testing::ElementsAre;
using RankOrder = FrameworkStyle::RankOrder;

// `pipelines` x `stages` x `tp`, on nodes of `per_node` GPUs, filled stage by stage.
Plan uniform_plan(int pipelines, int stages, int tp, int per_node) {
  Plan plan;
  plan.microbatch = 2;
  plan.global_batch = 2 * 3 * pipelines;
  for (int d = 0; d < pipelines; ++d) {
    PlanPipeline& pipeline = plan.pipelines.emplace_back();
    pipeline.microbatches = 3;
    for (int s = 0; s < stages; ++s) {
      PlanStage stage;
      stage.first_layer = s;
      stage.end_layer = s + 1;
      stage.gpu_type = "A";
      stage.shape.tp = tp;
      const int first = (s * pipelines + d) * tp;
      stage.node = "n" + std::to_string(first / per_node);
      for (int gpu = 0; gpu < tp; ++gpu) stage.gpus.push_back(first % per_node + gpu);
      pipeline.stages.push_back(stage);
    }
  }
  return plan;
}

// Megatron-Core's RankGenerator for the order "tp-cp-ep-dp-pp" without cp and ep: rank = tp + TP (dp + DP
// pp).
TEST(FrameworkRanks, ByStagesAreThoseOfMegatron) {
  std::mt19937 random(7);
  for (int turn = 0; turn < 20; ++turn) {
    const int tp = 1 << random() % 3, stages = 1 + static_cast<int>(random() % 4);
    const int pipelines = 1 + static_cast<int>(random() % 5);
    const RankLayout layout(uniform_plan(pipelines, stages, tp, 8));
    const std::vector<int> ranks = framework_ranks(layout, RankOrder::stages);
    for (const RankSlot& slot : layout.slots())
      EXPECT_EQ(ranks[static_cast<size_t>(slot.rank)],
                slot.tp_rank + tp * (slot.pipeline + pipelines * slot.stage));
  }
}

TEST(FrameworkRanks, ByPipelinesAreThoseOfThePlan) {
  const RankLayout layout(uniform_plan(2, 2, 1, 4));
  EXPECT_THAT(framework_ranks(layout, RankOrder::pipelines), ElementsAre(0, 1, 2, 3));
}

// Every rank once, local ranks from 0 on every node, nodes numbered from rank 0's on, GPUs each once.
TEST(RankEnvironment, NumbersRanksAsTorchrunDoes) {
  std::mt19937 random(11);
  for (int turn = 0; turn < 20; ++turn) {
    const int tp = 1 << random() % 3, stages = 1 + static_cast<int>(random() % 3);
    const int pipelines = 1 + static_cast<int>(random() % 4);
    const Plan plan = uniform_plan(pipelines, stages, tp, 4);
    const RankOrder order = random() % 2 == 0 ? RankOrder::stages : RankOrder::pipelines;
    const RankLayout layout(plan);
    const std::vector<std::string> nodes = nodes_in_order(layout, order);
    std::set<int> ranks;
    for (size_t n = 0; n < nodes.size(); ++n) {
      const auto environments =
          rank_environments(plan, order, nodes[n], {"host", 1234, "77", "/plan"}, "", 8);
      EXPECT_EQ(environments.size(), layout.ranks_on(nodes[n]).size());
      int last = -1;
      for (size_t local = 0; local < environments.size(); ++local) {
        const std::map<std::string, std::string>& set = environments[local];
        EXPECT_EQ(set.at("LOCAL_RANK"), std::to_string(local));
        EXPECT_EQ(set.at("LOCAL_WORLD_SIZE"), std::to_string(environments.size()));
        EXPECT_EQ(set.at("GROUP_RANK"), std::to_string(n));
        EXPECT_EQ(set.at("WORLD_SIZE"), std::to_string(layout.size()));
        const int rank = std::stoi(set.at("RANK"));
        EXPECT_GT(rank, last);
        last = rank;
        EXPECT_TRUE(ranks.insert(rank).second);
      }
      EXPECT_TRUE(ranks.contains(0));
    }
    EXPECT_EQ(*ranks.rbegin() + 1, layout.size());
    EXPECT_EQ(static_cast<int>(ranks.size()), layout.size());
  }
}

TEST(RankEnvironment, LocalRanksIndexTheGpusOfThePlan) {
  Plan plan = uniform_plan(3, 1, 1, 4);
  plan.pipelines[0].stages[0].gpus = {3};
  plan.pipelines[1].stages[0].gpus = {0};
  plan.pipelines[2].stages[0].gpus = {2};
  const auto whole = rank_environments(plan, RankOrder::pipelines, "n0", {"host", 1, "7", "/p"}, "", 6);
  EXPECT_EQ(whole[0].at("CUDA_VISIBLE_DEVICES"), "3,0,2");
  EXPECT_EQ(whole[2].at("CUDA_VISIBLE_DEVICES"), "3,0,2");
  EXPECT_EQ(whole[0].at("OMP_NUM_THREADS"), "2");
  EXPECT_EQ(whole[1].at("SAILOR_MICROBATCHES"), "3");
  EXPECT_EQ(whole[1].at("SAILOR_SHARD_RANKS"), "3");
  EXPECT_EQ(whole[1].at("SAILOR_CP_RANK"), "0");
  // As Slurm names those of the job.
  const auto named = rank_environments(plan, RankOrder::pipelines, "n0", {"host", 1, "7", "/p"},
                                       "GPU-a,GPU-b,GPU-c,GPU-d", 6);
  EXPECT_EQ(named[0].at("CUDA_VISIBLE_DEVICES"), "GPU-d,GPU-a,GPU-c");
  EXPECT_THROW(rank_environments(plan, RankOrder::pipelines, "n0", {"host", 1, "7", "/p"}, "0,1", 6),
               std::runtime_error);
}

TEST(RankEnvironment, PortsAreBelowThoseThatKernelsGiveOut) {
  std::set<int> ports;
  for (int job = 1; job <= 100; ++job) {
    const int port = rendezvous_port(std::to_string(job));
    EXPECT_GE(port, 1024);
    EXPECT_LT(port, 32768);
    ports.insert(port);
  }
  EXPECT_GT(ports.size(), 90u);
}

}  // namespace
}  // namespace sailor
