#include "tests/bench/evaluation/result_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

namespace sailor::bench {
namespace {

ResultTable example() {
  ResultTable table{"example", "What <it> is.", {"who", "how much", "remark"}, {}};
  table.add({"a & b", "1.15x", {"worse, by far", Mark::bad}});
  table.add({"c|d", "-", ""});
  return table;
}

TEST(ResultTable, SaysTheSameInAllForms) {
  const ResultTable table = example();
  EXPECT_EQ(to_csv(table), "who,how much,remark\na & b,1.15x,\"worse, by far\"\nc|d,-,\n");
  EXPECT_EQ(
      to_markdown(table),
      "What <it> is.\n\n| who | how much | remark |\n|---|---:|---|\n| a & b | 1.15x | **worse, by far** |\n"
      "| c\\|d | - |  |\n");
  const std::string html = to_html(table);
  EXPECT_NE(html.find("What &lt;it&gt; is."), std::string::npos);
  EXPECT_NE(
      html.find("<td class=\" word\">a &amp; b</td><td>1.15x</td><td class=\"bad word\">worse, by far</td>"),
      std::string::npos);
}

TEST(ResultTable, ARowHasACellPerColumn) {
  ResultTable table = example();
  EXPECT_THROW(table.add({"too", "few"}), std::logic_error);
}

TEST(ResultTable, FiguresAreFinite) {
  EXPECT_EQ(figure(0.123456), "0.1235");
  EXPECT_EQ(figure(std::nullopt), "-");
  EXPECT_EQ(factor(0.994), "0.99x");
  EXPECT_EQ(factor(1), "1.00x");
  EXPECT_EQ(factor(10.94), "10.9x");
  EXPECT_EQ(factor(1850.4), "1850x");
  EXPECT_EQ(per_cent(-1e-14), "0.00");
  EXPECT_THROW(figure(NAN), std::logic_error);
  EXPECT_THROW(factor(INFINITY), std::logic_error);
}

}  // namespace
}  // namespace sailor::bench
