#include "tests/bench/evaluation/charts.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "tests/unit/occurrences.h"

namespace sailor::bench {
namespace {

TEST(Charts, EveryBarIsDrawnAndWhatIsNotCountedIsPale) {
  BarChart chart{
      "R&D", "times", {"one", "two"}, {{"a", {Bar{2}, Bar{1}}}, {"b", {std::nullopt, Bar{0.5, false}}}}, 1};
  const std::string svg = chart.svg();
  EXPECT_EQ(occurrences(svg, "<title>"), 3u);
  EXPECT_EQ(occurrences(svg, "fill-opacity=\"0.35\""), 1u);
  EXPECT_EQ(occurrences(svg, "class=\"rule\""), 1u);
  EXPECT_EQ(occurrences(svg, "R&amp;D"), 1u);
  EXPECT_NE(svg.find("<title>two, b: 0.5</title>"), std::string::npos);
}

TEST(Charts, BarsAreAddedByName) {
  BarChart chart;
  chart.add("one", "a", {1});
  chart.add("two", "b", {2});
  chart.add("one", "b", {3});
  EXPECT_EQ(chart.groups, (std::vector<std::string>{"one", "two"}));
  ASSERT_EQ(chart.series.size(), 2u);
  EXPECT_FALSE(chart.series[0].bars.at(1).has_value());
  EXPECT_EQ(chart.series[1].bars.at(0)->value, 3);
  EXPECT_EQ(chart.series[1].bars.at(1)->value, 2);
}

TEST(Charts, ABarTwiceAsHighIsTwiceAsLong) {
  // The axis ends at 4 (marks at 0, 1, 2, ..): 260 for 4.
  const std::string svg = BarChart{"", "", {"one", "two"}, {{"a", {Bar{3.5}, Bar{1.75}}}}, {}}.svg();
  EXPECT_EQ(occurrences(svg, "height=\"227.5\""), 1u);
  EXPECT_EQ(occurrences(svg, "height=\"113.8\""), 1u);
}

TEST(Charts, BarsOnDecadesAreAsLongAsTheirLogarithms) {
  // From 0.01 to 1: a bar of 0.1 is half as long as one of 1, over 260.
  const BarChart chart{"", "", {"one", "two", "three"}, {{"a", {Bar{0.01}, Bar{0.1}, Bar{1}}}}, {}, true};
  EXPECT_EQ(occurrences(chart.svg(), "height=\"130.0\""), 1u);
  EXPECT_EQ(occurrences(chart.svg(), "height=\"260.0\""), 1u);
}

TEST(Charts, LinesStandOnDecades) {
  // From 0.01 to 1 over two decades: 0.1 is in the middle of the plot (44 + 260 / 2).
  const std::string svg =
      LogLogChart{"", "x", "s", {{"a", {{1, 0.01}, {2, 0.1}, {4, 1}}}, {"b", {{2, 0.1}}, true, 1}}}.svg();
  EXPECT_EQ(occurrences(svg, "<circle"), 4u);
  EXPECT_EQ(occurrences(svg, "cy=\"174.0\""), 2u);
  EXPECT_EQ(occurrences(svg, "stroke-dasharray=\"6 4\""), 2u);  // the line and its entry in the legend
}

TEST(Charts, NothingToDrawIsStillADrawing) {
  EXPECT_EQ(occurrences(BarChart{}.svg(), "</svg>"), 1u);
  EXPECT_EQ(occurrences(LogLogChart{}.svg(), "</svg>"), 1u);
  EXPECT_EQ(occurrences((LogLogChart{"", "", "", {{"a", {{8, 2}}}}}.svg()), "<circle"), 1u);
}

TEST(Charts, WhatIsNotFiniteIsRefused) {
  EXPECT_THROW((BarChart{"", "", {"g"}, {{"a", {Bar{NAN}}}}, {}}.svg()), std::logic_error);
  EXPECT_THROW((LogLogChart{"", "", "", {{"a", {{1, INFINITY}}}}}.svg()), std::logic_error);
}

}  // namespace
}  // namespace sailor::bench
