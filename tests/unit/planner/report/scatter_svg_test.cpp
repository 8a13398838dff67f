#include "planner/report/scatter_svg.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <regex>

#include "tests/unit/occurrences.h"

namespace sailor {
namespace {

// Every tag is closed in the order it was opened; attribute values hold no raw markup.
std::string balance_error(const std::string& xml) {
  std::vector<std::string> open;
  const std::regex tag("<(/?)([a-zA-Z]+)([^<>]*?)(/?)>");
  size_t end = 0;
  for (auto it = std::sregex_iterator(xml.begin(), xml.end(), tag); it != std::sregex_iterator(); ++it) {
    const std::string between = xml.substr(end, static_cast<size_t>(it->position()) - end);
    if (between.find_first_of("<>") != std::string::npos) return "stray markup in: " + between;
    end = static_cast<size_t>(it->position() + it->length());
    if ((*it)[4] == "/") continue;
    if ((*it)[1] != "/") {
      open.push_back((*it)[2]);
    } else if (open.empty() || open.back() != (*it)[2]) {
      return "unexpected </" + (*it)[2].str() + ">";
    } else {
      open.pop_back();
    }
  }
  return open.empty() ? "" : "not closed: " + open.back();
}

TEST(ScatterSvg, EveryPairIsADotAndEverySeriesALegend) {
  const std::string svg =
      scatter_svg("title", "s", {{"first", {{1, 2}, {3, 4}, {50, 60}}}, {"second", {{0.5, 0.4}}}});
  EXPECT_EQ(balance_error(svg), "");
  EXPECT_EQ(occurrences(svg, "r=\"3\""), 4u);
  EXPECT_EQ(occurrences(svg, "r=\"5\""), 2u);
  EXPECT_EQ(occurrences(svg, ">first (3)<"), 1u);
  EXPECT_EQ(occurrences(svg, ">second (1)<"), 1u);
  EXPECT_EQ(occurrences(svg, "class=\"exact\""), 1u);
  EXPECT_EQ(occurrences(svg, "class=\"band\""), 2u);
  EXPECT_EQ(svg.rfind("<svg ", 0), 0u);
}

TEST(ScatterSvg, WhatHasNoLogarithmIsLeftOut) {
  const double infinite = std::numeric_limits<double>::infinity();
  const std::string svg = scatter_svg("t", "s", {{"a", {{1, 2}, {0, 1}, {1, -1}, {infinite, 1}, {1, NAN}}}});
  EXPECT_EQ(balance_error(svg), "");
  EXPECT_EQ(occurrences(svg, "r=\"3\""), 1u);
  EXPECT_EQ(occurrences(svg, ">a (1)<"), 1u);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}

TEST(ScatterSvg, DotsOnTheDiagonalStandOnTheDiagonal) {
  // From 1 to 100: 10 is in the middle of both axes.
  const std::string svg = scatter_svg("t", "s", {{"a", {{10, 10}, {1, 1}, {100, 100}}}});
  EXPECT_EQ(occurrences(svg, "<circle cx=\"320.0\" cy=\"290.0\" r=\"3\"/>"), 1u);
  EXPECT_EQ(occurrences(svg, "<circle cx=\"80.0\" cy=\"530.0\" r=\"3\"/>"), 1u);
  EXPECT_EQ(occurrences(svg, "<circle cx=\"560.0\" cy=\"50.0\" r=\"3\"/>"), 1u);
}

TEST(ScatterSvg, NothingToDrawAndNamesWithMarkupAreStillADrawing) {
  for (const std::vector<ScatterSeries>& series :
       {std::vector<ScatterSeries>{}, {{"empty", {}}}, {{"one", {{5, 5}}}}, {{"a<b>&c", {{1, 1}}}}})
    EXPECT_EQ(balance_error(scatter_svg("R&D <1>", "s & <", series)), "");
  EXPECT_EQ(occurrences(scatter_svg("R&D <1>", "s", {}), "R&amp;D &lt;1&gt;"), 1u);
}

}  // namespace
}  // namespace sailor
