#include "planner/report/run_report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "planner/report/line_chart.h"
#include "tests/unit/occurrences.h"

namespace sailor {
namespace {

RunHistory real_run() {
  return read_run_history(std::string(SAILOR_SOURCE_DIR) + "/tests/golden/fixtures/sailor-42");
}

TEST(RunReport, ShowsWhatIsKnownWithoutAPrediction) {
  const std::string page = run_report(real_run(), nullptr, nullptr, {"no <profiles>"});
  for (const char* part :
       {"<h2>Result</h2>", "<h2>Plan</h2>", "<h2>Training</h2>", "<h2>Memory of each rank</h2>",
        "<h2>Changes of plan</h2>", "<h2>Events</h2>", "no &lt;profiles&gt;"})
    EXPECT_NE(page.find(part), std::string::npos) << part;
  EXPECT_EQ(page.find("<h2>Prediction</h2>"), std::string::npos);
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_EQ(page.find("nan"), std::string::npos);
}

TEST(RunReport, OfARunThatHasJustBegun) {
  RunHistory history = real_run();
  history.steps.clear();
  history.events.clear();
  history.changes.clear();
  history.summary.reset();
  const std::string page = run_report(history, nullptr, nullptr, {});
  EXPECT_NE(page.find("not ended"), std::string::npos);
  EXPECT_EQ(page.find("<h2>Training</h2>"), std::string::npos);
  EXPECT_EQ(page.find("<h2>Events</h2>"), std::string::npos);
}

TEST(LineChart, DrawsLinesLevelsMarksAndLeavesOutWhatIsNotFinite) {
  LineChart chart;
  chart.title = "a <b>";
  chart.series = {{"one", {{1, 2}, {2, std::numeric_limits<double>::quiet_NaN()}, {3, 1}}},
                  {"two", {{2, 1.5}}, true}};
  chart.levels = {{"promised", {{0, NAN}, {2, 1.2}, {3, 1.4}}}};
  chart.marks = {{2, "here"}, {7, "beyond"}};
  const std::string svg = line_chart_svg(chart);
  EXPECT_NE(svg.find("a &lt;b&gt;"), std::string::npos);
  EXPECT_EQ(occurrences(svg, "class=\"mark\""), 1u) << "what is beyond the steps is not drawn";
  EXPECT_EQ(occurrences(svg, "<circle class=\"s1\""), 2u) << "one point, and the legend";
  EXPECT_EQ(occurrences(svg, "<path class=\"level\""), 3u)
      << "two pieces without the gap before them, and the legend";
  EXPECT_NE(svg.find("promised: 1.4<"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}

TEST(LineChart, OfManyMarksOnlySomeHaveWordsAndAllALine) {
  LineChart chart;
  chart.series = {{"one", {{0, 1}, {1000, 2}}}};
  for (int i = 0; i < 250; ++i) chart.marks.emplace_back(4 * i, "generation " + std::to_string(i));
  const std::string svg = line_chart_svg(chart);
  EXPECT_EQ(occurrences(svg, "class=\"mark\""), 250u);
  EXPECT_GE(occurrences(svg, "font-size=\"11\">generation"), 4u);
  EXPECT_LE(occurrences(svg, "font-size=\"11\">generation"), 40u) << "of 610 pixels in four rows";
}

TEST(LineChart, SurvivesNothingOnePointAndEqualValues) {
  LineChart chart;
  EXPECT_EQ(line_chart_svg(chart).find("nan"), std::string::npos);
  chart.series = {{"one", {{5, 0}}}};
  EXPECT_EQ(line_chart_svg(chart).find("nan"), std::string::npos);
  chart.series = {{"one", {{1, 3}, {2, 3}}}};
  EXPECT_EQ(line_chart_svg(chart).find("nan"), std::string::npos);
}

TEST(LineChart, StaysSmallAndKeepsTheExtremes) {
  LineChart chart;
  ChartSeries series{"many", {}};
  for (int i = 0; i < 1'000'000; ++i) series.points.emplace_back(i, i == 500'001 ? 100.0 : std::sin(i));
  chart.series = {series};
  const std::string svg = line_chart_svg(chart);
  EXPECT_LT(svg.size(), 40'000u);
  EXPECT_NE(svg.find(">100</text>"), std::string::npos);
  EXPECT_NE(svg.find(" 62.0"), std::string::npos) << "the greatest value is at the top";
}

}  // namespace
}  // namespace sailor
