// The user's own resource options: which limit the plan, which contradict it, which are repeated.
#include "spank_plugin/node_limits.h"

#include <gmock/gmock.h>

#include <map>

#include "planner/spec/error.h"

namespace sailor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

OptionLookup given(std::map<std::string, std::string> options) {
  return [options = std::move(options)](const char* name) -> std::optional<std::string> {
    auto it = options.find(name);
    return it == options.end() ? std::nullopt : std::optional<std::string>(it->second);
  };
}

TEST(NodeLimits, OptionsThatNameNodesBecomeLimits) {
  NodeWishes wishes = node_wishes(given({{"partition", "p,q"},
                                         {"nodelist", "n[1-2],m"},
                                         {"exclude", "n2"},
                                         {"constraint", "fast&new"},
                                         {"nodes", "2-4"},
                                         {"reservation", "r"},
                                         {"time", "90"},
                                         {"account", "physics"},
                                         {"qos", "high"}}),
                                  {}, {});
  EXPECT_THAT(wishes.partitions, ElementsAre("p", "q"));
  EXPECT_THAT(wishes.only_nodes, ElementsAre("n1", "n2", "m"));
  EXPECT_THAT(wishes.excluded_nodes, ElementsAre("n2"));
  EXPECT_EQ(wishes.features, "fast&new");
  EXPECT_EQ(wishes.max_nodes, 4);
  EXPECT_EQ(wishes.reservation, "r");
  EXPECT_TRUE(wishes.time_limit_s.has_value());
  EXPECT_EQ(wishes.account, "physics");
  EXPECT_EQ(wishes.qos, "high");
  EXPECT_FALSE(wishes.include_busy);
}

TEST(NodeLimits, WhatTheJobAsksForBesideGpus) {
  NodeWishes wishes =
      node_wishes(given({{"exclusive", "exclusive"}, {"cpus-per-task", "3"}, {"mem", "4G"}}), {}, {});
  EXPECT_TRUE(wishes.whole_nodes);
  EXPECT_EQ(wishes.cpus_per_rank, 3);
  EXPECT_TRUE(wishes.memory_is_given);
  wishes = node_wishes(given({{"exclusive", "user"}}), {}, {});
  EXPECT_FALSE(wishes.whole_nodes);
  EXPECT_EQ(wishes.cpus_per_rank, std::nullopt);
  EXPECT_FALSE(wishes.memory_is_given);
}

TEST(NodeLimits, NothingGivenLimitsNothing) {
  NodeWishes wishes = node_wishes(given({}), {}, {});
  EXPECT_THAT(wishes.partitions, IsEmpty());
  EXPECT_THAT(wishes.only_nodes, IsEmpty());
  EXPECT_THAT(wishes.excluded_nodes, IsEmpty());
  EXPECT_EQ(wishes.max_nodes, std::nullopt);
  EXPECT_EQ(wishes.time_limit_s, std::nullopt);
  refuse_contradictions(given({}));
  EXPECT_EQ(reason_to_start_later(given({})), "");
}

TEST(NodeLimits, OurOwnOptionForPartitionsComesFirstThenSlurmsThenTheJobSpec) {
  SubmitOptions options;
  JobSpec job;
  job.resources.partitions = {"spec"};
  EXPECT_THAT(node_wishes(given({}), options, job).partitions, ElementsAre("spec"));
  EXPECT_THAT(node_wishes(given({{"partition", "p"}}), options, job).partitions, ElementsAre("p"));
  options.overrides.partitions = {"ours"};
  EXPECT_THAT(node_wishes(given({{"partition", "p"}}), options, job).partitions, ElementsAre("ours"));
}

TEST(NodeLimits, ContradictionsNameTheOption) {
  for (const char* name : {"array", "ntasks", "ntasks-per-node", "gres", "gpus", "gpus-per-task", "nodefile",
                           "clusters", "contiguous", "switches", "distribution"}) {
    try {
      refuse_contradictions(given({{name, "1"}}));
      FAIL() << name << " accepted";
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), HasSubstr(std::string("--") + name + ":"));
    }
  }
  EXPECT_THROW(refuse_contradictions(given({{"reservation", "a,b"}})), InputError);
  EXPECT_THROW(node_wishes(given({{"nodes", "some"}}), {}, {}), InputError);
  for (const char* name : {"account", "qos", "dependency", "begin", "signal", "time", "mem", "nodelist",
                           "exclude", "nodes", "constraint", "reservation", "partition"})
    refuse_contradictions(given({{name, "1"}}));
}

TEST(NodeLimits, WhatSlurmKeepsToTheFirstComponentIsRepeated) {
  EXPECT_THAT(repeated_options(given({{"cpus-per-task", "2"}, {"constraint", "x"}, {"time", "5"}})),
              ElementsAre("--cpus-per-task=2", "--constraint=x"));
  EXPECT_EQ(reason_to_start_later(given({{"dependency", "afterok:1"}})), "--dependency");
}

}  // namespace
}  // namespace sailor
