#include "spank_plugin/slurm/feature_expression.h"

#include <gtest/gtest.h>

#include "planner/spec/error.h"

namespace sailor {
namespace {

bool has(const std::string& expression) {
  return satisfies({"a", "b", "c"}, expression);
}

TEST(FeatureExpression, FeaturesAndTheirCombinations) {
  EXPECT_TRUE(has("a"));
  EXPECT_FALSE(has("x"));
  EXPECT_TRUE(has("a&b,c"));
  EXPECT_FALSE(has("a&x"));
  EXPECT_TRUE(has("x|b"));
  EXPECT_TRUE(has("(x|a)&(b|y)"));
  EXPECT_FALSE(has("(x|y)&a"));
  EXPECT_FALSE(has("((x))"));
}

TEST(FeatureExpression, OperatorsAreReadFromLeftToRight) {
  EXPECT_FALSE(has("a|b&x"));  // (a|b)&x
  EXPECT_TRUE(has("a|(b&x)"));
  EXPECT_TRUE(has("x&a|b"));
}

TEST(FeatureExpression, WhatIsNoneIsAnError) {
  for (const char* bad : {"", "&", "a&", "|a", "a&&b", "(a", "a)", "()", "a(b)"})
    EXPECT_THROW(has(bad), InputError) << bad;
  for (const char* several : {"[a|b]", "a*2", "[a*1&b*2]"}) EXPECT_THROW(has(several), InputError) << several;
  EXPECT_THROW(has(std::string(100000, '(')), InputError);
}

}  // namespace
}  // namespace sailor
