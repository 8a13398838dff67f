#include "tests/bench/native/random_problem.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "planner/inputs/load_inputs.h"
#include "planner/inputs/search_request.h"
#include "planner/plan/plan_json.h"
#include "tests/bench/native/judge.h"
#include "tests/bench/native/search_rivals.h"
#include "tests/bench/native/uniform_rivals.h"

namespace sailor::bench {
namespace {

const char* const kCatalog = SAILOR_SOURCE_DIR "/etc/catalog.yaml";

TEST(RandomProblem, IsTheSameWheneverItIsDrawn) {
  const Catalog catalog = load_catalog(kCatalog);
  std::set<std::string> jobs;
  for (int number = 0; number < 20; ++number) {
    const RandomProblem one = random_problem(catalog, 5, number, {});
    const RandomProblem again = random_problem(catalog, 5, number, {});
    EXPECT_EQ(one.job_yaml, again.job_yaml);
    EXPECT_EQ(to_yaml(one.inputs.snapshot), to_yaml(again.inputs.snapshot));
    EXPECT_EQ(to_json(one.network), to_json(again.network));
    jobs.insert(one.job_yaml);
  }
  EXPECT_GT(jobs.size(), 18u);
}

TEST(RandomProblem, DoesNotDependOnTheMachine) {
  const Catalog catalog = parse_catalog(
      "sailor_catalog: 1\n"
      "gpu_types:\n"
      "  A: {memory: 40GiB, peak_flops: {bf16: 312e12}, memory_bandwidth: 1555GB/s, compute_units: 108}\n"
      "  B: {memory: 16GiB, peak_flops: {bf16: 125e12}, memory_bandwidth: 900GB/s, compute_units: 80}\n",
      "catalog.yaml");
  const RandomProblem problem = random_problem(catalog, 1, 2, {});
  EXPECT_EQ(problem.job_yaml,
            "model: {family: gpt2, layers: 66, hidden: 8192, heads: 64, feed_forward: 32768, sequence: 1024, "
            "vocabulary: 50257, tied_embeddings: true}\n"
            "training: {global_batch: 384, precision: fp16, steps: 1000}\n");
  EXPECT_EQ(problem.gpus(), 111);
  EXPECT_EQ(problem.inputs.snapshot.nodes.back().name, "z2-A-002");
}

TEST(RandomProblem, StaysWithinItsLimits) {
  const Catalog catalog = load_catalog(kCatalog);
  int64_t least = INT64_MAX, most = 0;
  std::set<size_t> types, zones;
  for (int number = 0; number < 60; ++number) {
    const RandomProblem problem = random_problem(catalog, 9, number, {128, 3, 2});
    EXPECT_GE(problem.gpus(), 8);
    EXPECT_LE(problem.gpus(), 128);
    const int64_t batch = problem.inputs.job.training.global_batch;
    EXPECT_GE(batch, 64);
    EXPECT_LE(batch, 2048);
    least = std::min(least, batch);
    most = std::max(most, batch);
    types.insert(problem.types().size());
    zones.insert(problem.zones().size());
  }
  EXPECT_LT(least, 128);
  EXPECT_GT(most, 1024);
  EXPECT_EQ(types, (std::set<size_t>{1, 2, 3}));
  EXPECT_EQ(zones, (std::set<size_t>{1, 2}));
}

// As the command line reads it from files.
PlanningInputs dumped(const RandomProblem& problem, const char* name) {
  const std::filesystem::path to = std::filesystem::path(testing::TempDir()) / name;
  dump_problem(problem, to);
  return load_inputs(to / "job.yaml", to / "sailor.yaml", {},
                     [&](const SiteConfig&) { return load_snapshot(to / "cluster.yaml"); });
}

TEST(RandomProblem, IsTheSameToTheCommandLine) {
  for (const bool drawn_links : {true, false}) {
    const RandomProblem problem = random_problem(load_catalog(kCatalog), 91, 5, {64, 3, 2, drawn_links});
    const PlanningInputs read = dumped(problem, "random_problem");
    const std::vector<Rival> plans =
        uniform_plans_by_estimate(problem.inputs.context(), trainable_features(), 5);
    ASSERT_FALSE(plans.empty());
    for (const Rival& rival : plans)
      EXPECT_DOUBLE_EQ(simulate(read.context(), rival.plan).iteration_s,
                       simulate(problem.inputs.context(), rival.plan).iteration_s)
          << rival.name;
  }
}

TEST(RandomProblem, IsPlannedAsByTheCommandLine) {
  for (const bool drawn_links : {true, false}) {
    const RandomProblem problem = random_problem(load_catalog(kCatalog), 91, 5, {64, 3, 2, drawn_links});
    const PlanningInputs read = dumped(problem, "planned_problem");
    const SearchResult here = search(problem.inputs.context(), SearchEffort().options(1)),
                       there = search(read.context(), plan_options({}, read.site));
    ASSERT_FALSE(here.candidates.empty());
    ASSERT_FALSE(there.candidates.empty());
    EXPECT_EQ(to_json(here.candidates[0].plan), to_json(there.candidates[0].plan));
  }
}

}  // namespace
}  // namespace sailor::bench
