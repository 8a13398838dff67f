#include "planner/simulator/recent_values.h"

#include <gtest/gtest.h>

#include <random>
#include <unordered_map>

namespace sailor::native {
namespace {

TEST(RecentValues, WhatIsKnownIsRightAndWhatWasUsedLastIsKnown) {
  RecentValues<int64_t> known;
  std::unordered_map<uint64_t, int64_t> expected;
  std::mt19937_64 random(7);
  int replaced = 0;
  for (int i = 1; i <= 100'000; ++i) {
    // Small and large keys, about half of them again; many with equal low or high bits.
    const uint64_t key = (1 + random() % 20'000) << (random() % 2 == 0 ? 0 : 40);
    {
      const auto [value, is_new] = known.at(key);
      const auto before = expected.find(key);
      if (is_new) {
        replaced += before != expected.end();
        ASSERT_EQ(value, 0) << key;
      } else {
        ASSERT_NE(before, expected.end()) << key;
        ASSERT_EQ(value, before->second) << key;
      }
      value = expected[key] = i;
    }
    const auto [again, is_new] = known.at(key);
    ASSERT_FALSE(is_new) << key;
    ASSERT_EQ(again, i) << key;
  }
  EXPECT_GT(replaced, 0) << "more keys than places";
}

}  // namespace
}  // namespace sailor::native
