#include "tests/bench/evaluation/published.h"

#include <gtest/gtest.h>

namespace sailor::bench {
namespace {

TEST(Published, NumbersOfListsAndRanges) {
  EXPECT_EQ((PublishedNumber{"", "", "1.9 / 2.03 / 1.15", "x", ""}.values()),
            (std::vector<double>{1.9, 2.03, 1.15}));
  EXPECT_EQ((PublishedNumber{"", "", "1.08-1.81", "x", ""}.values()), (std::vector<double>{1.08, 1.81}));
  EXPECT_EQ((PublishedNumber{"", "", "hours / 0.25 / 0.4", "s", ""}.values()),
            (std::vector<double>{0.25, 0.4}));
  EXPECT_TRUE((PublishedNumber{"", "", "", "", ""}.values().empty()));
}

TEST(Published, NamesStandInTheOrderOfTheText) {
  EXPECT_EQ(names_in("over the closest (B) and over A", {"A", "B", "C"}),
            (std::vector<std::string>{"B", "A"}));
  const auto values = named_values("P < 1; Q < 1, R 14, S 300 (limit)");
  ASSERT_EQ(values.size(), 4u);
  EXPECT_EQ(values[1], (std::pair<std::string, std::string>("Q", "< 1")));
  EXPECT_EQ(values[3], (std::pair<std::string, std::string>("S", "300 (limit)")));
}

TEST(Published, AModelIsNamedInFullOrByItsBeginning) {
  EXPECT_TRUE(mentions("on 128 of NAME-350M", "NAME-350"));
  EXPECT_TRUE(mentions("5 zones of the Long-Name model", "Long-Name-2.7"));
  EXPECT_FALSE(mentions("5 zones of the Long-Name model", "NAME-350"));
}

TEST(Published, EveryFigureOfOursCounts) {
  PublishedTable table("t", "");
  table.add("all", 2, "x", {{"a", 2.5}, {"b", 1.995}}, true);  // half a per cent below is still reached
  table.add("some", 2, "x", {{"a", 2.5, 2.2}, {"b", 1.9}}, true);
  table.add("none", 2, "s", {{"a", 2.5}}, false);
  table.add("no run", 2, "x", {}, true);
  table.add_uncounted("noted", 2, "x", {{"a", 9}}, "not counted: why");
  EXPECT_EQ(table.compared(), 3);
  EXPECT_EQ(table.reached(), 1);
  EXPECT_EQ(table.partly(), 1);
  const auto& rows = table.table().rows;
  ASSERT_EQ(rows.size(), 5u);
  EXPECT_EQ(rows[0].back().text, "reached");
  EXPECT_EQ(rows[1].back().text, "reached by 1 of 2");
  EXPECT_EQ(rows[1][2].text, "2.20x, -");
  EXPECT_EQ(rows[1][3].text, "2.50x (a), 1.90x (b)");
  EXPECT_EQ(rows[2].back().text, "not reached");
  EXPECT_EQ(rows[3][3].text, "-");
  EXPECT_EQ(rows[4].back().text, "not counted: why");
}

}  // namespace
}  // namespace sailor::bench
