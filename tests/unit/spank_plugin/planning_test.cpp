// The plugin's way from a submission to a plan, without Slurm.
#include "spank_plugin/planning.h"

#include <gtest/gtest.h>

#include "planner/inputs/load_inputs.h"
#include "planner/inputs/search_request.h"
#include "planner/plan/plan_json.h"

namespace sailor {
namespace {

const std::string kFixtures = SAILOR_SOURCE_DIR "/tests/golden/fixtures/";

// All nodes of the snapshot, in one partition.
LiveCluster live(const Snapshot& snapshot) {
  LiveCluster cluster;
  cluster.snapshot = snapshot;
  cluster.partitions = {{"all", {}, {}}};
  for (const SnapshotNode& node : snapshot.nodes) {
    cluster.partitions[0].nodes.push_back(node.name);
    cluster.nodes.push_back({node.name, "gpu:" + std::to_string(node.gpus)});
  }
  return cluster;
}

TEST(Planning, TheSameQuestionHasTheSamePlanInThePluginAndOnTheCommandLine) {
  const Snapshot snapshot = load_snapshot(kFixtures + "snapshot.yaml");
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

}  // namespace
}  // namespace sailor
