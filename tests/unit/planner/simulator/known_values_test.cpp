#include "planner/simulator/known_values.h"

#include <gtest/gtest.h>

#include <random>
#include <unordered_map>

namespace sailor::native {
namespace {

TEST(KnownValues, KeepsWhatAnOrdinaryMapWould) {
  KnownValues<int64_t> known;
  std::unordered_map<uint64_t, int64_t> expected;
  std::mt19937_64 random(7);
  for (int i = 0; i < 20'000; ++i) {
    // Small and large keys, about half of them again; many with equal low or high bits.
    const uint64_t key = (1 + random() % 5'000) << (random() % 2 == 0 ? 0 : 40);
    const auto [value, is_new] = known.at(key);
    const auto [it, added] = expected.try_emplace(key, 0);
    ASSERT_EQ(is_new, added) << key;
    ASSERT_EQ(value, it->second) << key;
    value = it->second = i;
  }
}

}  // namespace
}  // namespace sailor::native
