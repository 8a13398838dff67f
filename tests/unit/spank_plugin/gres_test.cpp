#include "spank_plugin/slurm/commands/gres.h"

#include <gmock/gmock.h>

namespace sailor {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Gres, ReadsTypeCountAndIndices) {
  auto gres = parse_gres("gpu:big:4(IDX:0,2-3)");
  ASSERT_EQ(gres.size(), 1u);
  EXPECT_EQ(gres[0].name, "gpu");
  EXPECT_EQ(gres[0].type, "big");
  EXPECT_EQ(gres[0].count, 4);
  EXPECT_THAT(gres[0].indices, ElementsAre(0, 2, 3));
}

TEST(Gres, CommasInsideParenthesesDoNotSeparateEntries) {
  auto gres = parse_gres("gpu:big:2(IDX:0,2),gpu:small:1(IDX:N/A),shard:8(S:0-1)");
  ASSERT_EQ(gres.size(), 3u);
  EXPECT_EQ(gres[1].type, "small");
  EXPECT_THAT(gres[1].indices, IsEmpty());
  EXPECT_EQ(gres[2].name, "shard");
  EXPECT_EQ(gres[2].type, "");
  EXPECT_EQ(gres[2].count, 8);
}

TEST(Gres, UntypedAndNullTypesAreEmpty) {
  EXPECT_EQ(parse_gres("gpu:4").at(0).type, "");
  EXPECT_EQ(parse_gres("gpu:(null):4(IDX:0-1)").at(0).count, 4);
  EXPECT_EQ(parse_gres("gpu:(null):4(IDX:0-1)").at(0).type, "");
}

TEST(Gres, WhatIsNotUnderstoodIsLeftOut) {
  EXPECT_THAT(parse_gres(""), IsEmpty());
  EXPECT_THAT(parse_gres("(null)"), IsEmpty());
  EXPECT_THAT(parse_gres("gpu:x:-1"), IsEmpty());
  EXPECT_THAT(parse_gres("gpu:x:2147483647"), IsEmpty());
  EXPECT_THAT(parse_gres("gpu:x:many,:3,gpu"), IsEmpty());
  EXPECT_THAT(parse_gres("gpu:x:1(IDX:0"), testing::SizeIs(1));
}

TEST(Gres, IndexRangesAreSortedAndEachOnce) {
  EXPECT_THAT(parse_index_ranges("5,0-2,1"), ElementsAre(0, 1, 2, 5));
  EXPECT_THAT(parse_index_ranges("0-99999999,x,3"), ElementsAre(3));
}

}  // namespace
}  // namespace sailor
