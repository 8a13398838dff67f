// When nodes come free, by the limits of running and waiting jobs.
#include "planner/start/start_times.h"

#include <gmock/gmock.h>

namespace sailor {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;
using testing::Optional;

Snapshot cluster(const std::string& rest) {
  return parse_snapshot("sailor_snapshot: 1\nnodes:\n  - {name: a1, zone: z, gpu_type: X, gpus: 4}\n" + rest,
                        "test.yaml");
}

TEST(StartTimes, NodesComeFreeAtTheLimitsOfTheirJobs) {
  const Snapshot snapshot = cluster(
      "busy:\n"
      "  - {name: a2, zone: z, gpu_type: X, gpus: 4, state: in use, free_in_s: 600}\n"
      "  - {name: a3, zone: z, gpu_type: X, gpus: 4, state: in use, free_in_s: 900}\n"
      "  - {name: a4, zone: z, gpu_type: X, gpus: 4, state: powered down}\n");
  const StartTimes times(snapshot, 3600);
  ASSERT_EQ(times.kinds().size(), 1U);
  EXPECT_EQ(times.earliest(times.kinds()[0], 1)->wait_s, 0);
  EXPECT_EQ(times.earliest(times.kinds()[0], 2)->wait_s, 600);
  EXPECT_EQ(times.earliest(times.kinds()[0], 3)->wait_s, 900);
  EXPECT_FALSE(times.earliest(times.kinds()[0], 4));  // nobody knows
  EXPECT_THAT(times.wait_for({"a1", "a3"}), Optional(DoubleEq(900)));
  EXPECT_FALSE(times.wait_for({"a1", "elsewhere"}));
  EXPECT_THAT(times.wait_for_alike({"a3", "a4"}), Optional(DoubleEq(600))) << "a1 and a2";
  EXPECT_THAT(times.wait_for_alike({"a4"}), Optional(DoubleEq(0)));
  EXPECT_THAT(times.free_at(600), ElementsAre(0, 1));
  EXPECT_THAT(times.next_times(3), ElementsAre(600, 900));
}

TEST(StartTimes, WaitingJobsComeFirst) {
  // a job of one node gets a2 for an hour, one of two nodes waits for both
  const Snapshot snapshot = cluster(
      "busy:\n"
      "  - {name: a2, zone: z, gpu_type: X, gpus: 4, state: in use, free_in_s: 600}\n"
      "queue:\n"
      "  - {nodes: 1, names: a2, limit_s: 3600}\n"
      "  - {nodes: 2, names: \"a[1-2]\", start_in_s: 4200, limit_s: 1800}\n");
  EXPECT_THAT(StartTimes(snapshot, 4200).wait_for({"a1"}), Optional(DoubleEq(0)));  // backfilled
  EXPECT_THAT(StartTimes(snapshot, 4201).wait_for({"a1"}), Optional(DoubleEq(6000)));
  EXPECT_THAT(StartTimes(snapshot, std::nullopt).wait_for({"a2"}), Optional(DoubleEq(6000)));
  const StartTimes long_job(snapshot, 9000);
  EXPECT_THAT(long_job.wait_for({"a1"}, 4200), Optional(DoubleEq(0))) << "if it may be as short";
  EXPECT_THAT(long_job.wait_for_alike({"a2"}, 4200), Optional(DoubleEq(0)));
  EXPECT_THAT(long_job.wait_for({"a1"}, 99999), Optional(DoubleEq(6000))) << "never longer than its limit";
}

TEST(StartTimes, NodesAreKeptForAWaitingJobFromBeforeItsStart) {
  const Snapshot snapshot = cluster(
      "queue:\n"
      "  - {nodes: 1, names: a1, start_in_s: 300, kept_in_s: 240, limit_s: 600}\n");
  EXPECT_THAT(StartTimes(snapshot, 240).wait_for({"a1"}), Optional(DoubleEq(0)));
  EXPECT_THAT(StartTimes(snapshot, 241).wait_for({"a1"}), Optional(DoubleEq(900)));
}

TEST(StartTimes, ANodeThatAWaitingJobWillGetIsFreeAfterIt) {
  const Snapshot snapshot = cluster(
      "busy:\n"
      "  - {name: a2, zone: z, gpu_type: X, gpus: 4, state: planned for another job}\n"
      "queue:\n"
      "  - {nodes: 1, names: a2, start_in_s: 100, limit_s: 500}\n");
  EXPECT_THAT(StartTimes(snapshot, 60).wait_for({"a2"}), Optional(DoubleEq(600)));
}

TEST(StartTimes, NodesOfSeveralKindsMustBeFreeTogether) {
  // a1 is free for five minutes, then for ever after a quarter of an hour; b1 after ten minutes.
  const Snapshot snapshot = cluster(
      "busy:\n"
      "  - {name: b1, zone: z, gpu_type: Y, gpus: 4, state: in use, free_in_s: 600}\n"
      "queue:\n"
      "  - {nodes: 1, names: a1, start_in_s: 300, limit_s: 600}\n");
  const StartTimes times(snapshot, 200);
  EXPECT_THAT(times.wait_for_alike({"a1"}), Optional(DoubleEq(0)));
  EXPECT_THAT(times.wait_for_alike({"a1", "b1"}), Optional(DoubleEq(900)));
}

TEST(StartTimes, AnIdleNodeThatIsPlannedForALaterJobIsFreeUntilThen) {
  const Snapshot snapshot = cluster(
      "busy:\n"
      "  - {name: a2, zone: z, gpu_type: X, gpus: 4, state: planned for another job, jobs_end_in_s: 0}\n"
      "queue:\n"
      "  - {nodes: 1, names: a2, start_in_s: 100, limit_s: 500}\n");
  EXPECT_THAT(StartTimes(snapshot, 60).wait_for({"a2"}), Optional(DoubleEq(0)));
  EXPECT_THAT(StartTimes(snapshot, 200).wait_for({"a2"}), Optional(DoubleEq(600)));
}

TEST(StartTimes, AWaitingJobOfWhichSlurmSaysNoStartGetsTheNodeWhenItComesFree) {
  const Snapshot snapshot = cluster(
      "busy:\n"
      "  - {name: a2, zone: z, gpu_type: X, gpus: 4, state: in use, jobs_end_in_s: 60}\n"
      "queue:\n"
      "  - {nodes: 1, names: a2, limit_s: 500}\n");
  EXPECT_THAT(StartTimes(snapshot, 60).wait_for({"a2"}), Optional(DoubleEq(560)));
}

}  // namespace
}  // namespace sailor
