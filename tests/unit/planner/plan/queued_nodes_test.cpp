// Nodes for which a job queues while it runs.
#include "planner/plan/queued_nodes.h"

#include <gmock/gmock.h>

#include "planner/spec/error.h"

namespace sailor {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

SnapshotNode queued_node(const std::string& name, const std::string& type, int gpus = 8) {
  SnapshotNode node;
  node.name = name;
  node.partition = "fast";
  node.zone = "east";
  node.gpu_type = type;
  node.gpus = gpus;
  return node;
}

TEST(QueuedNodes, AreCountedByKindWithoutThoseThatTheJobHas) {
  const SnapshotNode a = queued_node("a1", "X"), b = queued_node("a2", "X"), c = queued_node("a3", "X");
  const SnapshotNode half = queued_node("h1", "X", 4), other = queued_node("y1", "Y");
  EXPECT_THAT(queued_nodes({&a, &other, &b, &half}, {}),
              ElementsAre(QueuedNodes{"fast", "east", "X", 8, 2}, QueuedNodes{"fast", "east", "Y", 8, 1},
                          QueuedNodes{"fast", "east", "X", 4, 1}));
  EXPECT_THAT(queued_nodes({&a, &b, &other}, {&c}),
              ElementsAre(QueuedNodes{"fast", "east", "X", 8, 1}, QueuedNodes{"fast", "east", "Y", 8, 1}))
      << "one of them is another of the same kind";
  EXPECT_THAT(queued_nodes({&other}, {&other, &a}), IsEmpty());
}

TEST(QueuedNodes, AreOfOnePartitionAndZone) {
  const QueuedNodes kind{"fast", "east", "X", 8, 1};
  SnapshotNode node = queued_node("a1", "X");
  EXPECT_TRUE(kind.are_like(node));
  node.zone = "west";
  EXPECT_FALSE(kind.are_like(node));
  node = queued_node("a1", "X");
  node.partition = "slow";
  EXPECT_FALSE(kind.are_like(node));
}

TEST(QueuedNodes, AreReadAsTheyWereWritten) {
  const std::vector<QueuedNodes> queued = {{"fast", "east", "X", 8, 2}, {"", "", "Y", 4, 1}};
  EXPECT_EQ(parse_queued_nodes(to_json(queued), "a job"), queued);
  EXPECT_THAT(parse_queued_nodes("[]", "a job"), IsEmpty());
  for (const char* text : {"", "{", "7", R"([{"partition": "fast"}])",
                           R"([{"partition":1,"zone":"","gpu_type":"","gpus":1,"nodes":1}])"})
    EXPECT_THROW(parse_queued_nodes(text, "a job"), InputError) << text;
}

}  // namespace
}  // namespace sailor
