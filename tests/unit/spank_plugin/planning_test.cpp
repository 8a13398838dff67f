// The plugin's way from a submission to a plan, without Slurm.
#include "spank_plugin/planning.h"

#include <gtest/gtest.h>

#include <numeric>

#include "planner/inputs/load_inputs.h"
#include "planner/inputs/search_request.h"
#include "planner/plan/plan_json.h"

namespace sailor {
namespace {

const std::string kFixtures = SAILOR_SOURCE_DIR "/tests/golden/fixtures/";

// As the free GPUs of live clusters are.
Snapshot numbered_from_0(Snapshot snapshot) {
  for (SnapshotNode& node : snapshot.nodes) std::iota(node.free_gpus.begin(), node.free_gpus.end(), 0);
  return snapshot;
}

// All nodes of the snapshot, in one partition.
LiveCluster live(const Snapshot& snapshot) {
  LiveCluster cluster;
  cluster.snapshot = snapshot;
  cluster.partitions = {{"all", {}, {}}};
  for (const SnapshotNode& node : snapshot.nodes) {
    cluster.partitions[0].nodes.push_back(node.name);
  }
  return cluster;
}

TEST(Planning, TheSameQuestionHasTheSamePlanInThePluginAndOnTheCommandLine) {
  const Snapshot snapshot = numbered_from_0(load_snapshot(kFixtures + "snapshot.yaml"));
  for (const int64_t batch : {8, 21})
    for (const Objective objective : {Objective::throughput, Objective(Expense::cost)}) {
      JobSpec job = load_job_spec(kFixtures + "job.yaml");
      job.training.global_batch = batch;
      PlanOverrides overrides;
      overrides.objective = objective;
      const PlanningInputs inputs =
          load_inputs(job, kFixtures + "sailor.yaml", overrides, [&](const SiteConfig&) { return snapshot; });
      const SearchResult result = search(inputs.context(), plan_options({}, inputs.site));
      ASSERT_EQ(result.status, SearchStatus::found);

      SubmitOptions options;
      options.overrides = overrides;
      const PlannedJob planned =
          plan_job(options, job, inputs.site, NodeWishes{}, [&] { return live(snapshot); });
      EXPECT_EQ(to_json(planned.plan), to_json(result.candidates.front().plan)) << batch;
    }
}

// The fixture's cluster with shared nodes that have this much memory.
LiveCluster with_memory(int64_t bytes) {
  LiveCluster cluster = live(load_snapshot(kFixtures + "snapshot.yaml"));
  for (SnapshotNode& node : cluster.snapshot.nodes) {
    node.shared = true;
    node.host = {"gpu", 8, bytes};
  }
  return cluster;
}

TEST(Planning, RanksGetAsMuchMemoryAsThePlanNeedsWhereThereIsEnough) {
  const JobSpec job = load_job_spec(kFixtures + "job.yaml");
  const SiteConfig site = load_site_config(kFixtures + "sailor.yaml");
  const auto plan_with = [&](int64_t bytes) {
    return plan_job({}, job, site, {}, [bytes] { return with_memory(bytes); });
  };
  constexpr int64_t kGiB = int64_t{1} << 30;
  for (const Component& component : plan_with(1000 * kGiB).components) {
    const int ranks = component.per_rank ? 1 : component.tasks_per_node.value();
    EXPECT_GT(component.memory_mb, 1024 * ranks) << "a GiB for the process alone";
  }
  // With room for one rank on a node, plans have one there, whatever GPUs are free.
  const PlannedJob narrow = plan_with(3 * kGiB / 2);
  for (const Component& component : narrow.components)
    for (const int tasks : component.tasks_by_node) EXPECT_EQ(tasks, 1);
  try {
    plan_with(kGiB);
    FAIL() << "no rank has room";
  } catch (const Refusal& refusal) {
    EXPECT_EQ(refusal.exit_code(), 3);
    EXPECT_NE(std::string(refusal.what()).find("GiB of memory free"), std::string::npos) << refusal.what();
  }
}

TEST(Planning, AJobAsksForNoMoreThanAccountsAllow) {
  const JobSpec job = load_job_spec(kFixtures + "job.yaml");
  const SiteConfig site = load_site_config(kFixtures + "sailor.yaml");
  const auto plan_under = [&](std::map<std::string, JobLimit> limits) {
    LiveCluster cluster = with_memory(int64_t{1000} << 30);
    cluster.limits = std::move(limits);
    return plan_job({}, job, site, {}, [&] { return cluster; });
  };
  const auto refusal_under = [&](std::map<std::string, JobLimit> limits) -> std::string {
    try {
      plan_under(std::move(limits));
    } catch (const Refusal& refusal) {
      EXPECT_EQ(refusal.exit_code(), 3);
      return refusal.what();
    }
    return "no refusal";
  };
  const auto cpus_of = [](const PlannedJob& planned) {
    int cpus = 0;
    for (const Component& component : planned.components) cpus += component.tasks * component.cpus_per_task;
    return cpus;
  };
  const PlannedJob free = plan_under({});
  const int ranks = num_ranks(free.plan), cpus = cpus_of(free);
  ASSERT_GT(cpus, ranks);
  EXPECT_EQ(cpus_of(plan_under({{"cpu", {"cpu", cpus - 1, cpus, "few"}}})), (cpus - 1) / ranks * ranks);
  EXPECT_EQ(refusal_under({{"cpu", {"cpu", ranks - 1, cpus, "few CPUs"}}}),
            "few CPUs, the plan needs " + std::to_string(ranks));
  EXPECT_EQ(
      refusal_under({{"mem", {"mem", 10, 10, "little memory"}}}).rfind("little memory, the plan needs ", 0),
      0U);
  EXPECT_EQ(refusal_under({{"node", {"node", 0, 4, "no node"}}}), "no node");
  const int components = static_cast<int>(free.components.size());
  EXPECT_EQ(plan_under({{"job", {"job", 0, components, "later"}}}).components.size(), free.components.size());
  EXPECT_EQ(refusal_under({{"job", {"job", 0, components - 1, "few jobs"}}}),
            "few jobs, the plan needs " + std::to_string(components) +
                ", one for each partition: choose one with --partition");
}

TEST(Planning, TheGpusOfASharedNodeAreNumberedAsTheJobSeesThem) {
  const JobSpec job = load_job_spec(kFixtures + "job.yaml");
  const SiteConfig site = load_site_config(kFixtures + "sailor.yaml");
  LiveCluster cluster = with_memory(0);
  for (SnapshotNode& node : cluster.snapshot.nodes) node.free_gpus = {1};
  const PlannedJob planned = plan_job({}, job, site, {}, [&] { return cluster; });
  for (const PlanPipeline& pipeline : planned.plan.pipelines)
    for (const PlanStage& stage : pipeline.stages) EXPECT_EQ(stage.gpus, std::vector<int>{0});
}

}  // namespace
}  // namespace sailor
