#include "planner/spec/host_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/planner/error_of.h"

namespace sailor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(HostList, ExpandsAsSlurmDoes) {
  EXPECT_THAT(expand_host_list("a1"), ElementsAre("a1"));
  EXPECT_THAT(expand_host_list("h[1-3,7]"), ElementsAre("h1", "h2", "h3", "h7"));
  EXPECT_THAT(expand_host_list("h[08-10]"), ElementsAre("h08", "h09", "h10"));
  EXPECT_THAT(expand_host_list("h[9-10]"), ElementsAre("h9", "h10"));
  EXPECT_THAT(expand_host_list("b,a[1-2]-ib,c"), ElementsAre("b", "a1-ib", "a2-ib", "c"));
  EXPECT_THAT(expand_host_list("r[1-2]n[01,3]"), ElementsAre("r1n01", "r1n3", "r2n01", "r2n3"));
  EXPECT_EQ(expand_host_list("h[1-65536]").size(), 65536u);
}

TEST(HostList, SaysWhatIsWrong) {
  const auto error = [](const std::string& list) { return test::error_of([&] { expand_host_list(list); }); };
  EXPECT_THAT(error("h[1-3"),
              HasSubstr("\"h[1-3\" is not a host list such as h[1-3,7]: a bracket is not closed"));
  EXPECT_THAT(error("h1-3]"), HasSubstr("a bracket is closed that was not opened"));
  EXPECT_THAT(error("h[1-[2]]"), HasSubstr("a bracket inside a bracket"));
  EXPECT_THAT(error("h[3-1]"), HasSubstr("the range 3-1 descends"));
  EXPECT_THAT(error("h[]"), HasSubstr("\"\" is not a number"));
  EXPECT_THAT(error("h[1-]"), HasSubstr("\"\" is not a number"));
  EXPECT_THAT(error("h[a-b]"), HasSubstr("\"a\" is not a number"));
  EXPECT_THAT(error("h[1,-2]"), HasSubstr("\"\" is not a number"));
  EXPECT_THAT(error("h[1-2-3]"), HasSubstr("\"2-3\" is not a number"));
  EXPECT_THAT(error("h[99999999999]"), HasSubstr("\"99999999999\" is not a number of at most 9 digits"));
  EXPECT_THAT(error("a,,b"), HasSubstr("a name is empty"));
  EXPECT_THAT(error(""), HasSubstr("a name is empty"));
  EXPECT_THAT(error("h[0-65536]"), HasSubstr("more than 65536 names"));
  EXPECT_THAT(error("h[0-999]i[0-999]"), HasSubstr("more than 65536 names"));
}

}  // namespace
}  // namespace sailor
