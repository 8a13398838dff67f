#include "planner/inputs/planning_record.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "planner/plan/plan_json.h"
#include "planner/spec/text_file.h"
#include "tests/unit/planner/error_of.h"
#include "tests/unit/planner/scratch.h"

namespace sailor {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const std::string kFixtures = SAILOR_SOURCE_DIR "/tests/golden/fixtures/";

// A site of its own, with profiles in two directories: one of another model among them, and one that is there
// twice.
struct Site {
  std::string directory = test::scratch_directory("planning-record");
  PlanOverrides overrides;
  SearchRequest request;

  Site() {
    fs::create_directories(directory + "/a");
    fs::create_directories(directory + "/b");
    fs::copy_file(kFixtures + "profiles/quick.json", directory + "/a/z.json");
    fs::copy_file(kFixtures + "profiles/quick.json", directory + "/b/again.json");
    fs::copy_file(kFixtures + "profiles/network.json", directory + "/b/network.json");
    fs::copy_file(kFixtures + "catalog.yaml", directory + "/catalog.yaml");
    std::string other = read_text_file(kFixtures + "profiles/quick.json");
    other.replace(other.find("\"hidden\": 64"), 12, "\"hidden\": 32");
    write_file_atomically(directory + "/a/other.json", other);
    write_file_atomically(directory + "/sailor.yaml",
                          "sailor_site: 1\ncatalog: catalog.yaml\nprofiles: [a, b]\n"
                          "default_zone: {zone: east, region: land}\n"
                          "zones: [{zone: west, region: land, partitions: [slow]}]\n"
                          "usd_per_hour: {quick: {east: 7.1}}\n"
                          "planner: {time_limit: 20s}\n");
    overrides.max_gpus = {{"steady", 3}};
    overrides.objective = Expense::cost;
    overrides.min_iterations_per_s = 0.1;
    request.allow = PlanFeatures{PlanFeature::unlike_cuts, PlanFeature::unlike_shares};
    request.time_limit_s = 19.5;
    request.effort = 1.5;
  }
  PlanningInputs inputs() const {
    return load_inputs(load_job_spec(kFixtures + "job.yaml"), directory + "/sailor.yaml", overrides,
                       [](const SiteConfig&) { return load_snapshot(kFixtures + "snapshot.yaml"); });
  }
};

std::string answer(const PlanningInputs& inputs, const SearchRequest& request) {
  const SearchResult result = search(inputs.context(), plan_options(request, inputs.site));
  return result.candidates.empty() ? result.reason : to_json(result.candidates.front().plan);
}

TEST(PlanningRecord, PlansTheSameWhenTheSiteIsGone) {
  const std::string run = test::scratch_directory("planning-run");
  std::string before;
  {
    const Site site;
    const PlanningInputs inputs = site.inputs();
    before = answer(inputs, site.request);
    write_planning(run, parse_planning_files(to_json(planning_files(inputs, site.request)), "test"));
    fs::remove_all(site.directory);
  }
  const std::string planning = planning_of(run);
  ASSERT_EQ(planning, run + "/planning");
  const PlanningOptions options = load_planning_options(planning + "/options.yaml");
  const PlanningInputs inputs =
      load_inputs(load_job_spec(kFixtures + "job.yaml"), planning + "/sailor.yaml", options.overrides,
                  [&](const SiteConfig&) { return load_snapshot(planning + "/cluster.yaml"); });
  EXPECT_EQ(answer(inputs, options.request), before);
  EXPECT_EQ(inputs.job.objective, Expense::cost);
  EXPECT_EQ(inputs.site.planner_time_limit_s, 20);
  EXPECT_EQ(options.request.time_limit_s, 19.5);
  EXPECT_EQ(options.request.effort, 1.5);
}

TEST(PlanningRecord, TheSitesEffortAndTimeHoldWhereNobodySaysMore) {
  SiteConfig site;
  site.planner_effort = 3;
  site.planner_time_limit_s = 2;
  EXPECT_EQ(plan_options({}, site).effort, 3);
  EXPECT_EQ(plan_options({}, site).time_limit_s, 6) << "three times the search takes three times as long";
  SearchRequest request;
  request.effort = 0.5;
  EXPECT_EQ(plan_options(request, site).effort, 0.5);
  EXPECT_EQ(plan_options(request, site).time_limit_s, 2);
  request.effort = 10;
  request.time_limit_s = 1;
  EXPECT_EQ(plan_options(request, site).time_limit_s, 1);
}

TEST(PlanningRecord, KeepsOnlyTheProfilesThatWereUsed) {
  const Site site;
  std::vector<std::string> names;
  for (const auto& [name, text] : planning_files(site.inputs(), site.request)) names.push_back(name);
  EXPECT_THAT(names,
              testing::ElementsAre("catalog.yaml", "cluster.yaml", "framework.yaml", "options.yaml",
                                   "profiles/0000-z.json", "profiles/0001-network.json", "sailor.yaml"));
}

TEST(PlanningRecord, IsReplacedAsAWhole) {
  const std::string run = test::scratch_directory("planning-replaced");
  write_planning(run, {{"sailor.yaml", "1"}, {"profiles/a.json", "{}"}});
  write_planning(run, {{"sailor.yaml", "2"}});
  EXPECT_EQ(read_text_file(run + "/planning/sailor.yaml"), "2");
  EXPECT_FALSE(fs::exists(run + "/planning/profiles"));
  EXPECT_FALSE(fs::exists(run + "/planning.new"));
  write_planning(run, {});
  EXPECT_EQ(planning_of(run), "");
}

TEST(PlanningRecord, NoFileLeavesItsDirectory) {
  for (const char* name : {"../x", "/x", "a/../../x", "", "./x"})
    EXPECT_THAT(test::error_of([&] {
                  parse_planning_files(std::string("{\"") + name + "\": \"\"}", "the environment");
                }),
                HasSubstr("the environment: "))
        << name;
  EXPECT_THAT(test::error_of([] { parse_planning_files("{\"a\": 1}", "s"); }), HasSubstr("s: "));
}

}  // namespace
}  // namespace sailor
