// Which nodes of helper jobs others would start on.
#include "planner/scheduler/node_returns.h"

#include <gmock/gmock.h>

namespace sailor {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Use = JobInWait::Use;

// a and b are with helper jobs, c is free, d runs a job of others.
const std::vector<JobInWait::Node> kNodes = {
    {"a", Use::helpers}, {"b", Use::helpers}, {"c", Use::free}, {"d", Use::others}};

JobInWait on(size_t nodes, std::optional<double> limit_s = {}, std::optional<double> start_in_s = {}) {
  return {{{.nodes = nodes, .required = 0, .could = kNodes}}, limit_s, start_in_s};
}

TEST(NodeReturns, FreeNodesAreTakenFirst) {
  NodeReturns returns;
  EXPECT_THAT(returns.wanted_by(on(1)), IsEmpty()) << "it starts on c";
  EXPECT_THAT(returns.wanted_by(on(1)), ElementsAre("b"));
  EXPECT_THAT(returns.wanted_by(on(1)), ElementsAre("a"));
  EXPECT_THAT(returns.wanted_by(on(1)), IsEmpty());
  EXPECT_THAT(NodeReturns().wanted_by(on(2)), ElementsAre("b"));
}

TEST(NodeReturns, AJobThatCannotStartKeepsItsNodesFromLongerOnesBehindIt) {
  NodeReturns returns;
  EXPECT_THAT(returns.wanted_by(on(4, 600, 1000)), IsEmpty()) << "d is not to be had";
  EXPECT_THAT(returns.wanted_by(on(2, 1000)), ElementsAre("b")) << "it ends before the other starts";
  EXPECT_THAT(returns.wanted_by(on(1, 1001)), IsEmpty());
  EXPECT_THAT(returns.wanted_by(on(1)), IsEmpty()) << "without a time limit";
  NodeReturns unknown;
  EXPECT_THAT(unknown.wanted_by(on(4)), IsEmpty());
  EXPECT_THAT(unknown.wanted_by(on(2, 1)), IsEmpty()) << "nobody knows when the first one starts";
}

TEST(NodeReturns, RequiredNodesMustAllBeThere) {
  std::vector<JobInWait::Node> nodes = kNodes;
  nodes[0].required = nodes[2].required = true;
  const JobInWait job{{{.nodes = 2, .required = 2, .could = nodes}}, {}, {}};
  EXPECT_THAT(NodeReturns().wanted_by(job), ElementsAre("a"));
  nodes[3].required = true;
  EXPECT_THAT(NodeReturns().wanted_by({{{.nodes = 3, .required = 3, .could = nodes}}, {}, {}}), IsEmpty());
}

TEST(NodeReturns, ComponentsStartTogether) {
  const std::vector<JobInWait::Node> first = {kNodes[0]}, second = {kNodes[1]}, busy = {kNodes[3]};
  EXPECT_THAT(NodeReturns().wanted_by({{{1, 0, first}, {1, 0, second}}, {}, {}}), ElementsAre("a", "b"));
  EXPECT_THAT(NodeReturns().wanted_by({{{1, 0, first}, {1, 0, busy}}, {}, {}}), IsEmpty());
}

}  // namespace
}  // namespace sailor
