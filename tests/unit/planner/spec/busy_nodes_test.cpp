// Words about busy nodes.
#include "planner/spec/busy_nodes.h"

#include <gmock/gmock.h>

#include "planner/spec/text.h"

namespace sailor {
namespace {

BusyNode busy(const std::string& type, const std::string& state, std::optional<double> free_in_s) {
  BusyNode node;
  node.node.gpu_type = type;
  node.state = state;
  node.free_in_s = free_in_s;
  return node;
}

TEST(BusyNodes, AreCountedByTypeAndState) {
  EXPECT_EQ(busy_nodes_text({busy("A", "in use", 2100)}),
            "1 node of type A (in use); it comes free within 35 min");
  EXPECT_EQ(
      busy_nodes_text({busy("B", "in use", 60), busy("A", "in use", 9000), busy("A", "powered down", 0)}),
      "2 nodes of type A (1 in use, 1 powered down) and 1 of type B (in use); the first comes free within 0 "
      "s, "
      "all within 2 h 30 min");
  EXPECT_EQ(busy_nodes_text({busy("A", "in use", 600), busy("A", "planned for another job", std::nullopt)}),
            "2 nodes of type A (1 in use, 1 planned for another job); the first comes free within 10 min")
      << "when all are free nobody knows";
  EXPECT_EQ(busy_nodes_text({busy("A", "powered down", std::nullopt)}), "1 node of type A (powered down)");
}

TEST(BusyNodes, DurationsAreRoundedUp) {
  EXPECT_EQ(duration_text(0), "0 s");
  EXPECT_EQ(duration_text(89.2), "90 s");
  EXPECT_EQ(duration_text(91), "2 min");
  EXPECT_EQ(duration_text(90 * 60), "90 min");
  EXPECT_EQ(duration_text(7199), "2 h");
  EXPECT_EQ(duration_text(7201), "2 h 1 min");
  EXPECT_EQ(duration_text(86400 * 3), "3 days");
}

}  // namespace
}  // namespace sailor
