#include "trainer/elastic/lost_nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sailor {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(LostNodes, AreTriedMoreAndMoreSeldom) {
  LostNodes nodes;
  nodes.lost("b", 100);
  nodes.lost("a", 100);
  EXPECT_THAT(nodes.due(100), IsEmpty()) << "what just went is not back yet";
  EXPECT_THAT(nodes.due(110), ElementsAre("a", "b"));
  nodes.starting("a", 17);
  nodes.starting("b", 18);
  EXPECT_THAT(nodes.due(1000), IsEmpty()) << "one start at a time";

  double before_s = 0;
  double now_s = 1000;
  for (int i = 0; i < 8; ++i) {
    nodes.child_ended(17, now_s);
    double wait_s = 0;
    while (nodes.due(now_s + wait_s).empty()) wait_s += 1;
    EXPECT_GE(wait_s, before_s);
    EXPECT_LE(wait_s, 60) << "but never given up";
    before_s = wait_s;
    now_s += wait_s;
    nodes.starting("a", 17);
  }
  EXPECT_GE(before_s, 30);
}

TEST(LostNodes, OneThatIsBackIsNotTriedAgain) {
  LostNodes nodes;
  nodes.lost("a", 0);
  EXPECT_TRUE(nodes.back("a"));
  EXPECT_FALSE(nodes.back("a"));
  EXPECT_THAT(nodes.due(1000), IsEmpty());
}

TEST(LostNodes, AnotherChildsEndChangesNothing) {
  LostNodes nodes;
  nodes.lost("a", 0);
  nodes.starting("a", 17);
  nodes.child_ended(99, 10);
  EXPECT_THAT(nodes.due(1000), IsEmpty());
}

}  // namespace
}  // namespace sailor
