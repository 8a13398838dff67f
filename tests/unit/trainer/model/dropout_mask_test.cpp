#include "trainer/model/dropout_mask.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

namespace sailor {
namespace {

using ::testing::ElementsAre;

// The known answers that the authors publish with Random123 (kat_vectors, philox4x32 10).
TEST(DropoutMask, PhiloxGivesTheKnownAnswers) {
  EXPECT_THAT(philox4x32({0, 0, 0, 0}, {0, 0}), ElementsAre(0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8));
  EXPECT_THAT(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
              ElementsAre(0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd));
  EXPECT_THAT(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
              ElementsAre(0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1));
}

std::vector<uint32_t> numbers(const DropoutPlace& place, int64_t first, int64_t blocks) {
  std::vector<uint32_t> all(static_cast<std::size_t>(4 * blocks));
  dropout_numbers(place, first, blocks, all.data());
  return all;
}

TEST(DropoutMask, BlocksAreCountedAsTheHeaderSays) {
  const DropoutPlace place{.seed = 0x299f31d0a4093822, .step = 7, .sequence = 5, .layer = 9, .site = 1};
  const int64_t boundary = int64_t{1} << 32;
  const std::vector<uint32_t> across = numbers(place, boundary - 1, 2);
  const auto before = philox4x32({0xffffffff, 5, 7, 37}, {0xa4093822, 0x299f31d0});
  const auto after = philox4x32({0, 5, 7, 1 << 16 | 37}, {0xa4093822, 0x299f31d0});
  std::vector<uint32_t> expected(before.begin(), before.end());
  expected.insert(expected.end(), after.begin(), after.end());
  EXPECT_EQ(across, expected);
  // Pieces of a run of blocks are the run.
  const std::vector<uint32_t> run = numbers(place, 0, 10), piece = numbers(place, 3, 4);
  EXPECT_TRUE(std::equal(piece.begin(), piece.end(), run.begin() + 12));
}

TEST(DropoutMask, EveryPartOfAPlaceCounts) {
  const std::vector<DropoutPlace> places = {{.seed = 1},
                                            {.seed = 1ull << 32},
                                            {.seed = 1, .step = 1},
                                            {.seed = 1, .sequence = 1},
                                            {.layer = 1},
                                            {.seed = 1, .layer = 1},
                                            {.seed = 1, .site = 1},
                                            {.seed = 1, .layer = 4},
                                            {.seed = 1, .step = 1, .sequence = 1}};
  std::set<std::vector<uint32_t>> all;
  for (const DropoutPlace& place : places) all.insert(numbers(place, 0, 8));
  EXPECT_EQ(all.size(), places.size());
}

TEST(DropoutMask, ThresholdIsTheRate) {
  EXPECT_EQ(dropout_threshold(0), 0u);
  EXPECT_EQ(dropout_threshold(0.5), 1u << 31);
  EXPECT_EQ(dropout_threshold(0.9999999999999999), 0xffffffffu);
  // Of a million numbers, the share below is within 5 deviations, sqrt(p (1 - p) / n).
  const std::vector<uint32_t> all = numbers({.seed = 3, .step = 11, .layer = 2}, 0, 250000);
  for (const double rate : {0.01, 0.1, 0.5, 0.9}) {
    const auto below =
        std::count_if(all.begin(), all.end(), [&](uint32_t x) { return x < dropout_threshold(rate); });
    EXPECT_NEAR(static_cast<double>(below) / 1e6, rate, 5 * std::sqrt(rate * (1 - rate) / 1e6));
  }
}

}  // namespace
}  // namespace sailor
