// Order, backfill, preemption and failures of the simulated cluster, to the second.
#include "planner/scheduler/simulated_cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sailor {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using EventKind = SimulatedEvent::Kind;
using Preempted = SimulatedPartition::Preempted;
using Backfill = SimulatedSite::Backfill;

SimulatedSite site(int nodes, Backfill backfill = Backfill::conservative) {
  SimulatedSite site;
  site.backfill = backfill;
  site.start_s = 0;
  site.partitions = {{.name = "low", .nodes = {}}, {.name = "high", .nodes = {}, .tier = 1}};
  for (int i = 1; i <= nodes; ++i) {
    const std::string name = "n" + std::to_string(i);
    site.nodes.push_back({.name = name, .features = {i % 2 == 1 ? "odd" : "even"}});
    for (SimulatedPartition& partition : site.partitions) partition.nodes.push_back(name);
  }
  return site;
}

JobRequest job(int nodes, int limit_s, const std::string& partition = "low") {
  JobRequest request{.partition = partition, .nodes = nodes};
  request.time_limit_s = limit_s;
  return request;
}

struct Simulation : SimulatedCluster {
  using SimulatedCluster::SimulatedCluster;
  JobState state(const std::string& id) const { return find_job(id)->state; }
  std::optional<int64_t> start(const std::string& id) const { return find_job(id)->start_s; }
  std::vector<int64_t> starts(const std::string& id) const {
    std::vector<int64_t> times;
    for (const SimulatedEvent& event : history())
      if (event.kind == EventKind::started && event.job == id) times.push_back(event.time_s);
    return times;
  }
};

TEST(SimulatedQueue, FirstComeFirstServedAmongEqualsAndNiceOnesLast) {
  Simulation cluster(site(1));
  const auto running = cluster.submit(job(1, 100), {.takes_s = 50});
  JobRequest nice = job(1, 100);
  nice.nice = 10;
  const auto polite = cluster.submit(nice, {.takes_s = 10});
  const auto first = cluster.submit(job(1, 100), {.takes_s = 10});
  const auto second = cluster.submit(job(1, 100), {.takes_s = 10});
  cluster.advance_to(1000);
  EXPECT_THAT(cluster.starts(running), ElementsAre(0));
  EXPECT_THAT(cluster.starts(first), ElementsAre(50));
  EXPECT_THAT(cluster.starts(second), ElementsAre(60));
  EXPECT_THAT(cluster.starts(polite), ElementsAre(70));
}

TEST(SimulatedQueue, AJobEndsByItselfOrAtItsTimeLimit) {
  Simulation cluster(site(3));
  const auto done = cluster.submit(job(1, 100), {.takes_s = 40});
  const auto failed = cluster.submit(job(1, 100), {.takes_s = 40, .fails = true});
  const auto endless = cluster.submit(job(1, 100));
  cluster.advance_to(99);
  EXPECT_EQ(cluster.state(done), JobState::completed);
  EXPECT_EQ(cluster.find_job(done)->end_s, 40);
  EXPECT_EQ(cluster.state(failed), JobState::failed);
  EXPECT_EQ(cluster.state(endless), JobState::running);
  cluster.advance_to(100);
  EXPECT_EQ(cluster.state(endless), JobState::timed_out);
}

TEST(SimulatedQueue, FeaturesAndNamesAreRespected) {
  Simulation cluster(site(4));
  JobRequest even = job(2, 10);
  even.feature = "even";
  EXPECT_THAT(cluster.find_job(cluster.submit(even))->nodes, ElementsAre("n2", "n4"));
  JobRequest named = job(1, 10);
  named.node_names = {"n3"};
  EXPECT_THAT(cluster.find_job(cluster.submit(named))->nodes, ElementsAre("n3"));
  even.nodes = 3;
  EXPECT_THROW(cluster.submit(even), std::runtime_error);
  EXPECT_THROW(cluster.submit(job(1, 10, "no such")), std::runtime_error);
}

// Two of three nodes are taken until 100; a job of three nodes waits for that.
struct SimulatedBackfill : testing::Test {
  void begin(Backfill backfill) {
    cluster.emplace(site(3, backfill));
    cluster->submit(job(2, 100), {.takes_s = 100});
    wide = cluster->submit(job(3, 50), {.takes_s = 50});
  }
  std::optional<Simulation> cluster;
  std::string wide;
};

TEST_F(SimulatedBackfill, AShortJobOvertakesWhereItDelaysNobody) {
  begin(Backfill::conservative);
  EXPECT_EQ(cluster->start(wide), 100) << "expected";
  const auto fits = cluster->submit(job(1, 100), {.takes_s = 100});
  const auto too_long = cluster->submit(job(1, 101), {.takes_s = 1});
  EXPECT_EQ(cluster->state(fits), JobState::running);
  EXPECT_EQ(cluster->state(too_long), JobState::pending) << "by its limit, although it takes a second";
  EXPECT_EQ(cluster->start(too_long), 150);
  cluster->advance_to(150);
  EXPECT_THAT(cluster->starts(wide), ElementsAre(100));
  EXPECT_THAT(cluster->starts(too_long), ElementsAre(150));
}

TEST_F(SimulatedBackfill, EndsThatComeEarlyAreUsedAtOnce) {
  begin(Backfill::conservative);
  cluster->at(30, [&] { cluster->end_job("1", JobState::cancelled); });
  cluster->advance_to(200);
  EXPECT_THAT(cluster->starts(wide), ElementsAre(30));
}

// A job that fits before the first that waits, but not before the second.
TEST_F(SimulatedBackfill, ConservativeKeepsTheSecondJobsPlaceEasyOnlyTheFirsts) {
  const auto delays = [&](Backfill backfill) {
    cluster.emplace(site(3, backfill));
    cluster->submit(job(1, 100), {.takes_s = 100});  // n1 until 100
    JobRequest on_n1 = job(1, 50);
    on_n1.node_names = {"n1"};
    cluster->submit(on_n1, {.takes_s = 50});  // first: n1, 100 to 150
    JobRequest all = job(3, 10);
    const auto second = cluster->submit(all, {.takes_s = 10});  // 150 to 160 on all nodes
    JobRequest on_n2 = job(1, 400);
    on_n2.node_names = {"n2"};
    cluster->submit(on_n2, {.takes_s = 400});  // may run now only if the second has no place
    cluster->advance_to(1000);
    return cluster->starts(second);
  };
  EXPECT_THAT(delays(Backfill::conservative), ElementsAre(150));
  EXPECT_THAT(delays(Backfill::easy), ElementsAre(400));
}

TEST_F(SimulatedBackfill, WhenAJobCouldStartIsWhenItDoes) {
  begin(Backfill::conservative);
  for (const JobRequest& request : {job(1, 100), job(1, 101), job(2, 10), job(3, 10)}) {
    const auto promised = cluster->could_start(request);
    Simulation then = *cluster;
    const auto id = then.submit(request, {.takes_s = 1});
    then.advance_to(2000);
    EXPECT_THAT(then.starts(id), ElementsAre(promised.value()));
  }
  EXPECT_FALSE(cluster->could_start(job(4, 10)));
  cluster->fail_node("n3");
  EXPECT_FALSE(cluster->could_start(job(3, 10))) << "nobody knows when the node returns";
}

TEST_F(SimulatedBackfill, AtOnceOrNotAtAll) {
  begin(Backfill::conservative);
  EXPECT_FALSE(cluster->submit_at_once(job(1, 200))) << "it would delay the first that waits";
  EXPECT_EQ(cluster->jobs().size(), 2u);
  EXPECT_TRUE(cluster->submit_at_once(job(1, 100)));
}

struct SimulatedPreemption : testing::Test {
  void begin(Preempted preempted, int64_t grace_s, int nodes = 2) {
    SimulatedSite here = site(nodes);
    here.partitions[0].preempted = preempted;
    here.partitions[0].grace_s = grace_s;
    cluster.emplace(here);
    for (int i = 0; i < nodes; ++i) victims.push_back(cluster->submit(job(1, 1000), {.takes_s = 500}));
    cluster->advance_to(10);
  }
  std::optional<Simulation> cluster;
  std::vector<std::string> victims;
};

TEST_F(SimulatedPreemption, TheYoungestGoesBackIntoTheQueueAndBeginsAgain) {
  begin(Preempted::requeued, 0);
  const auto urgent = cluster->submit(job(1, 100, "high"), {.takes_s = 100});
  EXPECT_THAT(cluster->starts(urgent), ElementsAre(10));
  EXPECT_EQ(cluster->state(victims[0]), JobState::running);
  EXPECT_EQ(cluster->state(victims[1]), JobState::pending);
  EXPECT_EQ(cluster->find_job(victims[1])->restarts, 1);
  cluster->advance_to(2000);
  EXPECT_THAT(cluster->starts(victims[1]), ElementsAre(0, 110));
  EXPECT_EQ(cluster->find_job(victims[1])->end_s, 610);
}

TEST_F(SimulatedPreemption, VictimsHaveTheirGraceTime) {
  begin(Preempted::cancelled, 30);
  const auto urgent = cluster->submit(job(2, 100, "high"));
  EXPECT_EQ(cluster->start(urgent), 40) << "expected";
  EXPECT_EQ(cluster->state(victims[0]), JobState::running);
  const auto other = cluster->submit(job(1, 5), {.takes_s = 5});
  cluster->advance_to(39);
  EXPECT_EQ(cluster->state(victims[1]), JobState::running);
  cluster->advance_to(40);
  EXPECT_EQ(cluster->state(victims[1]), JobState::preempted);
  EXPECT_THAT(cluster->starts(urgent), ElementsAre(40));
  EXPECT_THAT(cluster->starts(other), IsEmpty()) << "what was freed is not for others";
}

TEST_F(SimulatedPreemption, AJobThatCannotBeRequeuedIsCancelled) {
  begin(Preempted::requeued, 0, 1);
  cluster->end_job(victims[0], JobState::cancelled);
  JobRequest once = job(1, 1000);
  once.requeue = false;
  const auto victim = cluster->submit(once);
  cluster->submit(job(1, 100, "high"));
  EXPECT_EQ(cluster->state(victim), JobState::preempted);
}

TEST_F(SimulatedPreemption, NobodyIsPreemptedForNothing) {
  begin(Preempted::never, 0);
  const auto urgent = cluster->submit(job(1, 100, "high"));
  EXPECT_EQ(cluster->state(urgent), JobState::pending);
  EXPECT_EQ(cluster->start(urgent), 1000) << "by the time limits";

  SimulatedSite here = site(2);
  here.partitions[0].preempted = Preempted::requeued;
  Simulation other(here);
  const auto low = other.submit(job(1, 1000));
  const auto same = other.submit(job(1, 1000, "high"));
  const auto wide = other.submit(job(2, 100, "high"));  // could not start without its equal's node
  EXPECT_EQ(other.state(low), JobState::running);
  EXPECT_EQ(other.state(same), JobState::running);
  EXPECT_EQ(other.state(wide), JobState::pending);
}

struct SimulatedFailures : testing::Test {
  Simulation cluster{site(2)};
};

TEST_F(SimulatedFailures, AJobOfALostNodeIsRequeuedOrLost) {
  const auto again = cluster.submit(job(1, 100), {.takes_s = 50});
  JobRequest once = job(1, 100);
  once.requeue = false;
  const auto lost = cluster.submit(once);
  cluster.advance_to(10);
  cluster.fail_node("n1");
  cluster.fail_node("n2");
  EXPECT_EQ(cluster.state(again), JobState::pending);
  EXPECT_EQ(cluster.state(lost), JobState::node_failed);
  EXPECT_TRUE(cluster.find_job(lost)->failed);
  cluster.at(25, [&] { cluster.return_node("n2"); });
  cluster.advance_to(100);
  EXPECT_THAT(cluster.starts(again), ElementsAre(0, 25));
  EXPECT_EQ(cluster.find_job(again)->end_s, 75);
}

TEST_F(SimulatedFailures, AJobMayGoOnWithWhatIsLeft) {
  JobRequest request = job(2, 100);
  request.no_kill = true;
  const auto id = cluster.submit(request);
  cluster.fail_node("n1");
  EXPECT_EQ(cluster.state(id), JobState::running);
  EXPECT_THAT(cluster.find_job(id)->nodes, ElementsAre("n2"));
  EXPECT_EQ(cluster.find_job(id)->head_node, "n1") << "where its script was";
  cluster.return_node("n1");
  EXPECT_TRUE(cluster.nodes()[0].free()) << "the job does not get it back";
}

TEST_F(SimulatedFailures, NodesThatDrainOrAreSilentGetNoNewJobs) {
  const auto running = cluster.submit(job(1, 100), {.takes_s = 20});
  cluster.drain_node("n1");
  cluster.lose_contact("n2");
  EXPECT_EQ(cluster.state(running), JobState::running);
  EXPECT_TRUE(cluster.nodes()[1].lost());
  const auto next = cluster.submit(job(1, 100));
  cluster.advance_to(50);
  EXPECT_EQ(cluster.state(running), JobState::completed);
  EXPECT_EQ(cluster.state(next), JobState::pending);
  cluster.return_node("n1");
  EXPECT_THAT(cluster.starts(next), ElementsAre(50));
}

TEST_F(SimulatedFailures, ARequeuedJobRestsForAWhile) {
  SimulatedSite here = site(1);
  here.requeue_delay_s = 120;
  Simulation slow(here);
  const auto id = slow.submit(job(1, 100));
  slow.advance_to(5);
  slow.requeue(id);
  slow.advance_to(500);
  EXPECT_THAT(slow.starts(id), ElementsAre(0, 125));
}

TEST(SimulatedCluster, TheSameQuestionsHaveTheSameHistory) {
  const auto run = [] {
    SimulatedSite here = site(4);
    here.partitions[0].preempted = Preempted::requeued;
    Simulation cluster(here);
    for (int i = 0; i < 40; ++i) {
      cluster.at(i * 7, [&cluster, i] {
        cluster.submit(job(1 + i % 3, 40 + i, i % 5 == 0 ? "high" : "low"), {.takes_s = 20 + i % 11});
      });
    }
    cluster.at(100, [&] { cluster.fail_node("n2"); });
    cluster.at(200, [&] { cluster.return_node("n2"); });
    cluster.advance_to(100'000);
    for (const QueuedJob& job : cluster.jobs()) EXPECT_EQ(job.state, JobState::completed) << job.id;
    return cluster.history();
  };
  EXPECT_EQ(run(), run());
}

}  // namespace
}  // namespace sailor
