// A plan on the nodes that its job got.
#include "planner/plan/node_groups.h"

#include <gmock/gmock.h>

#include "planner/spec/error.h"

namespace sailor {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const std::vector<NodeGroup> kGroups = {{{"a1", "a2"}, {"a1", "a2", "a3", "a4"}}, {{"b1"}, {"b1", "b2"}}};

TEST(NodeGroups, NodesThatTheJobHasStayAndOthersMoveToTheirKind) {
  EXPECT_THAT(moves_to({"a1", "a2", "b1"}, kGroups), IsEmpty());
  EXPECT_THAT(moves_to({"a2", "a4", "b2"}, kGroups),
              ElementsAre(testing::Pair("a1", "a4"), testing::Pair("b1", "b2")));
  EXPECT_THAT(moves_to({"b2", "a4", "a3"}, kGroups),
              ElementsAre(testing::Pair("a1", "a4"), testing::Pair("a2", "a3"), testing::Pair("b1", "b2")));
}

TEST(NodeGroups, ANodeWithoutAnEqualOneIsLeftOut) {
  EXPECT_THAT(moves_to({"a3", "b1"}, kGroups), ElementsAre(testing::Pair("a1", "a3")));
  EXPECT_THAT(moves_to({"c1", "c2", "b1"}, kGroups), IsEmpty());
}

TEST(NodeGroups, SnapshotsExchangeNames) {
  Snapshot snapshot;
  for (const char* name : {"a1", "a3", "b1"}) {
    snapshot.nodes.emplace_back();
    snapshot.nodes.back().name = name;
  }
  snapshot.busy.emplace_back();
  snapshot.busy.back().node.name = "a4";
  const Snapshot after = moved(snapshot, {{"a1", "a4"}});
  EXPECT_EQ(after.nodes[0].name, "a4");
  EXPECT_EQ(after.nodes[1].name, "a3");
  EXPECT_EQ(after.busy[0].node.name, "a1");
}

TEST(NodeGroups, TravelAsText) {
  const auto read = parse_node_groups(to_json(kGroups), "here");
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[0].planned, kGroups[0].planned);
  EXPECT_EQ(read[1].equal, kGroups[1].equal);
  for (const char* damaged : {"", "{", "[1]", R"([{"planned": ["a"]}])", R"([{"planned": 1, "equal": []}])"})
    EXPECT_THROW(parse_node_groups(damaged, "here"), InputError) << damaged;
}

}  // namespace
}  // namespace sailor
