// What a submission limits stays with the job.
#include "planner/inputs/submitted_limits.h"

#include <gmock/gmock.h>

#include "planner/spec/error.h"

namespace sailor {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::string limits(const OptionValues& given, const OptionValues& slurm) {
  return limits_text(given, [&](const char* name) -> std::optional<std::string> {
    auto it = slurm.find(name);
    if (it == slurm.end()) return std::nullopt;
    return it->second;
  });
}

TEST(SubmittedLimits, ObjectiveAndLimitsOfThePlanComeBack) {
  const std::string text = limits({{"sailor-objective", "cost"},
                                   {"sailor-max-gpus", "A=4,B=2"},
                                   {"sailor-min-throughput", "0.5"},
                                   {"sailor-dry-run", ""},
                                   {"sailor-plan", "/tmp/plan.json"}},
                                  {});
  const SubmittedLimits back = parse_limits(text, JobSpec{});
  EXPECT_EQ(back.overrides.objective, Expense::cost);
  EXPECT_EQ(back.overrides.max_gpus.at("A"), 4);
  EXPECT_EQ(back.overrides.min_iterations_per_s, 0.5);
  EXPECT_THAT(back.node_limits, IsEmpty());
  EXPECT_FALSE(back.most_nodes);
  EXPECT_EQ(text.find('\n'), std::string::npos);
}

TEST(SubmittedLimits, WhichNodesAndHowMany) {
  const SubmittedLimits back = parse_limits(limits({}, {{"partition", "a,b"},
                                                        {"exclude", "n[1-3]"},
                                                        {"constraint", "x&y"},
                                                        {"nodes", "2-6"},
                                                        {"time", "5"}}),
                                            JobSpec{});
  EXPECT_THAT(back.node_limits, ElementsAre("--partition=a,b", "--exclude=n[1-3]", "--constraint=x&y"));
  EXPECT_EQ(back.most_nodes, 6);
}

TEST(SubmittedLimits, PartitionsAreThoseOfTheMostSpecificWord) {
  JobSpec job;
  job.resources.partitions = {"c"};
  EXPECT_THAT(parse_limits("", job).node_limits, ElementsAre("--partition=c"));
  EXPECT_THAT(parse_limits(limits({}, {{"partition", "b"}}), job).node_limits, ElementsAre("--partition=b"));
  EXPECT_THAT(parse_limits(limits({{"sailor-partitions", "a"}}, {{"partition", "b"}}), job).node_limits,
              ElementsAre("--partition=a"));
}

TEST(SubmittedLimits, DamagedOnesAreRefused) {
  EXPECT_THROW(parse_limits("{", JobSpec{}), InputError);
  EXPECT_THROW(parse_limits("[1]", JobSpec{}), InputError);
}

}  // namespace
}  // namespace sailor
