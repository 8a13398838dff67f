#include "planner/profile/disturbed_times.h"

#include <gtest/gtest.h>

#include <random>

namespace sailor {
namespace {

LayerProfile one_layer(const std::vector<std::pair<int, double>>& forward_s) {
  LayerProfile profile;
  for (const auto& [microbatch, time_s] : forward_s) profile.cells[{microbatch, {1}}] = {{time_s, 0, 1}};
  return profile;
}

double forward_s(const LayerProfile& profile, int microbatch) {
  return profile.find(microbatch, {1})->at(0).forward_s;
}

TEST(DisturbedTimes, TheLineThroughTheNextTwoContinues) {
  LayerProfile profile = one_layer({{1, 5}, {2, 3}, {4, 4}, {8, 9}});
  replace_disturbed_times(profile);
  EXPECT_DOUBLE_EQ(forward_s(profile, 1), 2.5);
  EXPECT_EQ(forward_s(profile, 2), 3);
  EXPECT_EQ(forward_s(profile, 4), 4);
  EXPECT_EQ(profile.estimated, (std::set<std::pair<int, ReplicaShape>>{{1, {1}}}));
  EXPECT_DOUBLE_EQ(profile.uncertainty, 0.2);  // it may be 3
}

TEST(DisturbedTimes, FewerSequencesAreNotMoreEfficient) {
  LayerProfile profile = one_layer({{1, 5}, {2, 3}, {4, 7}});
  replace_disturbed_times(profile);
  EXPECT_DOUBLE_EQ(forward_s(profile, 1), 1.5);
}

TEST(DisturbedTimes, OneLargerMicrobatchIsAnUpperBoundOnly) {
  LayerProfile profile = one_layer({{2, 9}, {4, 7}});
  replace_disturbed_times(profile);
  EXPECT_EQ(forward_s(profile, 2), 7);
}

TEST(DisturbedTimes, ReplacedTimesReplaceSmallerOnes) {
  LayerProfile profile = one_layer({{1, 3.9}, {2, 4.5}, {4, 4}, {8, 6}});
  replace_disturbed_times(profile);
  EXPECT_DOUBLE_EQ(forward_s(profile, 2), 3);
  EXPECT_DOUBLE_EQ(forward_s(profile, 1), 2.5);
}

TEST(DisturbedTimes, PassesLayersAndShapesAreReplacedAlone) {
  LayerProfile profile;
  profile.cells[{1, {1}}] = {{5, 8, 1}, {1, 2, 1}};
  profile.cells[{2, {1}}] = {{3, 9, 1}, {2, 4, 1}};
  profile.cells[{4, {1}}] = {{4, 7, 1}, {4, 8, 1}};
  profile.cells[{4, {2}}] = {{1, 1, 1}, {1, 1, 1}};
  replace_disturbed_times(profile);
  EXPECT_EQ(profile.find(1, {1})->at(0).forward_s, 2.5);
  EXPECT_EQ(profile.find(1, {1})->at(0).backward_s, 7);
  EXPECT_EQ(profile.find(2, {1})->at(0).backward_s, 7);
  EXPECT_EQ(profile.find(1, {1})->at(1).forward_s, 1);
  EXPECT_EQ(profile.find(1, {1})->at(1).backward_s, 2);
  EXPECT_EQ(profile.find(4, {2})->at(0).forward_s, 1);
  EXPECT_FALSE(profile.is_estimated(4, {1}));
}

TEST(DisturbedTimes, DifferencesOfNoAccountDoNotMakeAnEstimate) {
  LayerProfile profile = one_layer({{1, 2.01}, {2, 2}, {4, 2}});
  replace_disturbed_times(profile);
  EXPECT_EQ(forward_s(profile, 1), 2);
  EXPECT_TRUE(profile.estimated.empty());
  EXPECT_EQ(profile.uncertainty, 0);
}

TEST(DisturbedTimes, AnyProfileBecomesOneThatCanBe) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 300; ++i) {
    std::vector<std::pair<int, double>> times;
    for (int microbatch = 1; microbatch <= 64; microbatch *= 2)
      if (random() % 4 != 0) times.push_back({microbatch, 1 + static_cast<double>(random() % 100)});
    LayerProfile profile = one_layer(times);
    replace_disturbed_times(profile);
    for (size_t a = 0; a < times.size(); ++a) {
      const double time_s = forward_s(profile, times[a].first);
      ASSERT_GT(time_s, 0);
      ASSERT_LE(time_s, times[a].second);
      ASSERT_GE(time_s, a > 0 ? forward_s(profile, times[a - 1].first) : 0);
    }
    const LayerProfile once = profile;
    replace_disturbed_times(profile);
    for (const auto& [microbatch, time_s] : times)
      ASSERT_EQ(forward_s(profile, microbatch), forward_s(once, microbatch));
  }
}

}  // namespace
}  // namespace sailor
