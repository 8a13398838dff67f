// Problems are what generate.h says they are, and dumps of them mean the same.
#include "tests/oracle/generate.h"

#include <gtest/gtest.h>

#include "planner/inputs/load_inputs.h"
#include "tests/oracle/dump.h"
#include "tests/oracle/enumerate.h"
#include "tests/oracle/product.h"
#include "tests/oracle/score.h"
#include "tests/unit/planner/scratch.h"

namespace sailor::oracle {
namespace {

TEST(OracleProblems, ObeyTheLimitsAndDependOnTheSeedOnly) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    const Limits limits{1 + static_cast<int>(seed % 3), 1 + static_cast<int>(seed % 4), 6, 5};
    const Problem problem = generate(seed, limits), again = generate(seed, limits);
    int free = 0;
    for (const NodeOfCluster& node : problem.nodes) free += static_cast<int>(node.free.size());
    EXPECT_GE(free, 1);
    EXPECT_LE(free, limits.gpus);
    EXPECT_LE(static_cast<int>(problem.types.size()), limits.types);
    EXPECT_LE(static_cast<int>(problem.zones.size()), limits.zones);
    EXPECT_LE(problem.layers, limits.layers);
    EXPECT_GE(problem.layers, 3);
    ASSERT_EQ(again.nodes.size(), problem.nodes.size());
    EXPECT_EQ(again.usd_per_hour, problem.usd_per_hour);
    EXPECT_EQ(again.links.begin()->second.fit, problem.links.begin()->second.fit);
  }
  EXPECT_NE(instance_seed(1, 2), instance_seed(2, 1));
}

TEST(OracleProblems, LargerMessagesTakeLonger) {
  for (uint64_t seed = 1; seed <= 100; ++seed)
    for (const auto& [ends, curve] : generate(seed, {}).links)
      for (double bytes = 1e5; bytes < 1e9; bytes *= 1.1) {
        const double s = curve.seconds(bytes), more = curve.seconds(1.05 * bytes);
        ASSERT_GT(s, 0) << "seed " << seed;
        ASSERT_GT(more, s) << "seed " << seed << ", " << bytes;
      }
}

// A dump is of use only when the planner reads the same problem from it.
TEST(OracleDump, FilesMeanTheSameProblem) {
  const std::string scratch = test::scratch_directory("oracle-dump");
  int product = 0, reference = 0;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    const Problem problem = generate(seed, {2, 2, 6, 5});
    const std::string directory = scratch + "/" + std::to_string(seed);
    dump_problem(problem, directory);
    const ParetoFront front = enumerate(problem).front;
    if (front.empty()) continue;
    const FrontPoint& best = front.fastest();
    const auto expect_equal = [&](const PlanningContext& context) {
      const Prediction p = simulate(context, planner_plan(problem, best.plan), CostModel::published);
      EXPECT_NEAR(p.iteration_s / best.iteration_s, 1, 1e-12) << "seed " << seed;
      EXPECT_NEAR(p.usd_per_iteration() / best.usd, 1, 1e-12) << "seed " << seed;
      EXPECT_TRUE(p.fits);
    };
    if (problem.reference_files) {
      ++reference;
      std::vector<std::string> types;
      for (const TypeOfGpu& type : problem.types) types.push_back(type.name);
      const JobSpec job = load_job_spec(directory + "/job.yaml");
      const Snapshot snapshot = load_snapshot(directory + "/snapshot.yaml");
      const Catalog catalog = load_catalog(directory + "/catalog.yaml");
      const ProfileSet profiles =
          load_reference_profiles(directory + "/reference", "oracle", types, ReferenceTimes::simulator_copy);
      expect_equal({job, snapshot, catalog, profiles});
    } else {
      ++product;
      const PlanningInputs inputs =
          load_inputs(directory + "/job.yaml", directory + "/sailor.yaml", {},
                      [&](const SiteConfig&) { return load_snapshot(directory + "/snapshot.yaml"); });
      expect_equal(inputs.context());
    }
  }
  EXPECT_GT(product, 5);
  EXPECT_GT(reference, 5);
}

}  // namespace
}  // namespace sailor::oracle
