#include "planner/simulator/gather_replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace sailor::native {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;

MeshSums gathers_of(const std::vector<std::vector<MeshSums::Member>>& buckets, double latency_s = 0) {
  MeshSums sums;
  for (const std::vector<MeshSums::Member>& members : buckets) {
    sums.buckets.push_back(
        {0, 0, latency_s, static_cast<uint32_t>(sums.members.size()), static_cast<uint32_t>(members.size())});
    sums.members.insert(sums.members.end(), members.begin(), members.end());
  }
  return sums;
}

// Members are {rank, node, count, port_s, card_s}.
TEST(GatherReplay, OneBucketTakesItsPortItsCardAndTheLatency) {
  const MeshSums sums = gathers_of({{{0, 0, 1, 2, 1}, {1, 1, 1, 1, 1}}}, 0.25);
  EXPECT_THAT(replay_gathers(sums, {0, 0}, 1, 2), ElementsAre(DoubleEq(2.25), DoubleEq(2.25)));
  EXPECT_THAT(replay_gathers(sums, {0, 5}, 1, 2), ElementsAre(DoubleEq(6.25), DoubleEq(6.25)));
  EXPECT_THAT(replay_gathers(sums, {0, 0}, 0.5, 2), ElementsAre(DoubleEq(1.25), DoubleEq(1.25)));
  // Three such ranks on a node.
  EXPECT_THAT(replay_gathers(gathers_of({{{0, 0, 3, 1, 1}, {1, 1, 1, 1, 1}}}), {0, 0}, 1, 2),
              ElementsAre(DoubleEq(3), DoubleEq(3)));
}

// Ranks 0 and 1 are the stages of a pipeline, on one node; rank 2 has all layers. Rank 0 sends its part at
// once, and so it takes the later stage twice as long; rank 2 sends its part of the first stage after that.
TEST(GatherReplay, WhoWaitsForAnotherHasSentItsPartAlready) {
  const MeshSums sums = gathers_of({{{1, 0, 1, 1, 1}, {2, 1, 1, 1, 1}}, {{0, 0, 1, 1, 1}, {2, 1, 1, 1, 1}}});
  EXPECT_THAT(replay_gathers(sums, {0, 0, 0}, 1, 2), ElementsAre(DoubleEq(3), DoubleEq(2), DoubleEq(3)));
  // Each stage on a node of its own.
  const MeshSums apart = gathers_of({{{1, 2, 1, 1, 1}, {2, 1, 1, 1, 1}}, {{0, 0, 1, 1, 1}, {2, 1, 1, 1, 1}}});
  EXPECT_THAT(replay_gathers(apart, {0, 0, 0}, 1, 3), ElementsAre(DoubleEq(2), DoubleEq(1), DoubleEq(2)));
}

TEST(GatherReplay, EndsAlsoWhereRoundingIsLongerThanAMessage) {
  const MeshSums sums = gathers_of({{{0, 0, 3, 1e-9, 1e-9}, {1, 0, 4, 1e-9, 1e-9}, {2, 1, 1, 1, 1}}});
  for (const double late_s : {1e3, 1e6, 1e9, 1e15})
    EXPECT_NEAR(replay_gathers(sums, {late_s, late_s / 3, late_s / 7}, 1, 2)[0], late_s, late_s * 1e-6);
}

TEST(GatherReplay, RanksWithoutBucketsAreReadyWhenTheyHaveUpdated) {
  EXPECT_THAT(replay_gathers({}, {1, 2}, 1, 1), ElementsAre(1, 2));
}

}  // namespace
}  // namespace sailor::native
