#include "planner/spec/site_policy.h"

#include <gmock/gmock.h>

#include <fstream>

#include "planner/spec/error.h"
#include "planner/spec/site_config.h"
#include "tests/unit/planner/scratch.h"

namespace sailor {
namespace {

using testing::ElementsAre;
using testing::Pair;
using testing::StartsWith;
using testing::UnorderedElementsAre;

SitePolicy policy_of(const std::string& yaml) {
  return *parse_site_config("sailor_site: 1\npolicy: " + yaml, "site.yaml").policy;
}

TEST(SitePolicy, IsReadFromTheSiteConfig) {
  EXPECT_FALSE(parse_site_config("sailor_site: 1\n", "site.yaml").policy.has_value());
  const SitePolicy policy = policy_of(
      "{planning: false, reason: until Friday, users: [ann, bob], groups: [ml], max_gpus: {X: 8, Y: {z1: "
      "4}, total: 10}}");
  EXPECT_FALSE(policy.planning);
  EXPECT_EQ(policy.reason, "until Friday");
  EXPECT_THAT(policy.users, ElementsAre("ann", "bob"));
  EXPECT_THAT(policy.groups, ElementsAre("ml"));
  EXPECT_THAT(policy.max_gpus, UnorderedElementsAre(Pair("X", 8), Pair("Y@z1", 4), Pair(kTotalGpus, 10)));
  EXPECT_TRUE(policy_of("{}").planning);
}

TEST(SitePolicy, WrongValuesAreNamedWithTheirLine) {
  for (const char* yaml : {"{planning: maybe}", "{max_gpus: {X: -1}}", "{max_gpus: 8}",
                           "{max_gpus: {total: {z: 8}}}", "{user: [a]}", "[a]"}) {
    try {
      policy_of(yaml);
      ADD_FAILURE() << yaml;
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), StartsWith("site.yaml:2: ")) << yaml;
    }
  }
}

TEST(SitePolicy, LowersTheLimitsOfASubmissionAndRaisesNone) {
  const SitePolicy policy =
      policy_of("{max_gpus: {A: 8, B: 8, C: 8, D: 8, E: {z: 4}, F: {z: 4}, total: 20}}");
  JobSpec job;
  job.resources.max_gpus = {{"B", 2}, {"C", 100}, {"G", 3}};
  job.resources.max_gpus_in_zone["E"]["z"] = 1;
  PlanOverrides overrides;
  overrides.max_gpus = {{"C", 50}, {"D", 1}, {"F@z", 100}};
  apply(policy, job, overrides);
  EXPECT_THAT(overrides.max_gpus, UnorderedElementsAre(Pair("A", 8), Pair("B", 2), Pair("C", 8), Pair("D", 1),
                                                       Pair("E@z", 1), Pair("F@z", 4), Pair(kTotalGpus, 20)));
  EXPECT_EQ(parse_max_gpus(max_gpus_text(overrides.max_gpus), "x"), overrides.max_gpus);
}

TEST(SitePolicy, ASiteWithOneIsNotReplacedByAUsersOwn) {
  const std::string dir = test::scratch_directory("site-policy");
  const auto write = [&](const std::string& name, const std::string& text) {
    std::ofstream(dir + "/" + name) << text;
    return dir + "/" + name;
  };
  const std::string own =
      write("own.yaml", "sailor_site: 1\nprofiles: [mine]\ngres: {a: FREE}\nelastic: {grow: true}\n");
  const std::string open = write("open.yaml", "sailor_site: 1\nprofiles: [ours]\ngres: {a: A}\n");
  const std::string strict = write(
      "strict.yaml",
      "sailor_site: 1\nprofiles: [ours]\ngres: {a: A}\nelastic: {grow: false}\npolicy: {users: [ann]}\n");
  EXPECT_EQ(load_site_under(open, own).file, own);
  EXPECT_EQ(load_site_under(dir + "/absent.yaml", own).file, own);
  const SiteConfig site = load_site_under(strict, own);
  EXPECT_EQ(site.file, strict);
  EXPECT_THAT(site.profiles, ElementsAre(dir + "/mine", dir + "/ours"));
  EXPECT_THAT(site.gres, ElementsAre(Pair("a", "A")));
  EXPECT_FALSE(site.jobs_may_grow);
  EXPECT_THAT(site.policy->users, ElementsAre("ann"));
  EXPECT_THAT(load_site_under(strict, strict).profiles, ElementsAre(dir + "/ours"));
  write("strict.yaml", "sailor_site: 1\npolicy: {users: ann}\n");
  EXPECT_THROW(load_site_under(strict, own), InputError) << "a broken policy is no licence";
}

}  // namespace
}  // namespace sailor
