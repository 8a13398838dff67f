// When nodes are free.
#include "planner/scheduler/backfill_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sailor {
namespace {

using testing::ElementsAre;

TEST(BackfillMap, AGapIsTakenWhereItIsLongEnough) {
  BackfillMap map(2);
  map.take({0}, 0, 10, "a");
  map.take({0}, 20, 30, "b");
  EXPECT_EQ(map.earliest({0}, 1, 0, 10)->begin_s, 10);
  EXPECT_EQ(map.earliest({0}, 1, 0, 11)->begin_s, 30);
  EXPECT_EQ(map.earliest({0}, 1, 12, 5)->begin_s, 12);
  EXPECT_THAT(map.earliest({0, 1}, 1, 0, 11)->nodes, ElementsAre(1));
  EXPECT_THAT(map.earliest({1, 0}, 2, 0, 5)->nodes, ElementsAre(1, 0));
}

TEST(BackfillMap, WhatEndsBeforeANodeIsKeptFitsBeforeIt) {
  BackfillMap map(1);
  map.take({0}, 20, 30, "a", 15);
  EXPECT_EQ(map.earliest({0}, 1, 0, 15)->begin_s, 0);
  EXPECT_EQ(map.earliest({0}, 1, 0, 16)->begin_s, 30);
}

TEST(BackfillMap, WhatNeverComesFreeIsNoSlot) {
  BackfillMap map(2);
  map.take({0}, 0, BackfillMap::kForEver, "a");
  EXPECT_FALSE(map.earliest({0}, 1, 0, 1));
  EXPECT_FALSE(map.earliest({0, 1}, 2, 0, 1));
  map.release("a");
  EXPECT_EQ(map.earliest({0, 1}, 2, 0, BackfillMap::kForEver)->begin_s, 0);
}

}  // namespace
}  // namespace sailor
