#include "planner/replay/availability_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/planner/error_of.h"

namespace sailor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(AvailabilityTrace, ColumnsAreTypesInZonesAndTimesBeginWithTheFirst) {
  const AvailabilityTrace trace = parse_trace(
      ",Timestamp,big_east-1,small_west_2\n0,1000.5,32,96\n1,1010.5,80,240\n2,1010.5,80,0\n3,1020.5,80,0\n",
      "t");
  EXPECT_EQ(trace.unit, AvailabilityTrace::Unit::gpus);
  ASSERT_EQ(trace.pools.size(), 2u);
  EXPECT_EQ(trace.pools[1].gpu_type, "small");
  EXPECT_EQ(trace.pools[1].zone, "west_2");
  ASSERT_EQ(trace.changes.size(), 2u)
      << "of two rows with one time the last counts; equal neighbours are one";
  EXPECT_DOUBLE_EQ(trace.changes[1].at_s, 10);
  EXPECT_THAT(trace.changes[1].count, ElementsAre(80, 0));
  EXPECT_DOUBLE_EQ(trace.end_s, 20);
}

TEST(AvailabilityTrace, WithoutAHeaderNodesOfOneTypeAreCounted) {
  const AvailabilityTrace trace = parse_trace("0,0\r\n21529,0\r\n21529,4\r\n21556,4\r\n21556,12\r\n", "t");
  EXPECT_EQ(trace.unit, AvailabilityTrace::Unit::nodes);
  ASSERT_EQ(trace.changes.size(), 3u);
  EXPECT_THAT(trace.changes[1].count, ElementsAre(4));
  EXPECT_DOUBLE_EQ(trace.changes[2].at_s, 21556);
}

TEST(AvailabilityTrace, JsonIsGpusOfOneType) {
  const AvailabilityTrace trace =
      parse_trace(R"([{"Time": 5, "GPUs": 4}, {"Time": 68, "GPUs": 4}, {"Time": 131, "GPUs": 3}])", "t");
  EXPECT_EQ(trace.unit, AvailabilityTrace::Unit::gpus);
  ASSERT_EQ(trace.changes.size(), 2u);
  EXPECT_DOUBLE_EQ(trace.changes[1].at_s, 126);
}

TEST(AvailabilityTrace, WhatIsWrongIsSaidWithItsLine) {
  const auto error = [](const std::string& text) { return test::error_of([&] { parse_trace(text, "t"); }); };
  EXPECT_THAT(error("0,1\n5,2\n4,2\n"), HasSubstr("t:3: times must not go back"));
  EXPECT_THAT(error("0,1\n5,two\n"), HasSubstr("t:2: expected a number from 0 on, found \"two\""));
  EXPECT_THAT(error("0,1\n5,-2\n"), HasSubstr("t:2: expected a number"));
  EXPECT_THAT(error("0,1\n5,1.5\n"), HasSubstr("t:2: a number of GPUs or nodes must be an integer"));
  EXPECT_THAT(error("0,1\n5\n"), HasSubstr("t:2: expected 2 columns, found 1"));
  EXPECT_THAT(error(",Timestamp,big\n0,1,2\n"), HasSubstr("t:1: a column must be named TYPE_ZONE"));
  EXPECT_THAT(error(",Timestamp\n0,1\n"), HasSubstr("t:1: there is no column of GPUs"));
  EXPECT_THAT(error(""), HasSubstr("t: a trace needs at least one row"));
  EXPECT_THAT(error("[\n{\"Time\": 5, \"GPUs\": 4},\n{\"Time\": 4, \"GPUs\": 4}]"),
              HasSubstr("t:3: [1].Time: times must not go back"));
  EXPECT_THAT(error("[{\"Time\": 5}]"), HasSubstr("GPUs"));
}

}  // namespace
}  // namespace sailor
