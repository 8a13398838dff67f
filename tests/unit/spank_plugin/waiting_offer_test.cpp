// When it pays to wait for nodes that others hold: times of plans are made up.
#include "spank_plugin/waiting_offer.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <ctime>

namespace sailor {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr int64_t kSteps = 1000;

SnapshotNode node(const std::string& name) {
  SnapshotNode result;
  result.name = name;
  result.free_gpus = {0, 1, 2, 3};
  return result;
}

// A plan that uses every node of a snapshot; an iteration takes 12 s over their number.
Candidate candidate(const Snapshot& snapshot) {
  Candidate result;
  result.plan.pipelines.resize(snapshot.nodes.size());
  for (PlanPipeline& pipeline : result.plan.pipelines) {
    pipeline.stages.resize(1);
    pipeline.stages[0].shape.tp = 4;
  }
  result.prediction.iteration_s = 12.0 / static_cast<double>(snapshot.nodes.size());
  return result;
}

class WaitingOfferTest : public testing::Test {
 protected:
  WaitingOfferTest() { snapshot.nodes = {node("a1")}; }

  void busy(const std::string& name, std::optional<double> free_in_s) {
    snapshot.busy.push_back({node(name), "in use", free_in_s});
  }
  std::optional<WaitingOffer> offer() {
    return worth_waiting(snapshot, candidate(snapshot), kSteps, 0.3,
                         [this](const Snapshot& then, double time_limit_s) {
                           ++calls;
                           spent_s += time_limit_s;
                           SearchResult result;
                           result.status = SearchStatus::found;
                           result.candidates = {candidate(then)};
                           return result;
                         });
  }

  Snapshot snapshot;  // one node: 12,000 s from now
  int calls = 0;
  double spent_s = 0;
};

TEST_F(WaitingOfferTest, HalfTheTimeAfterAShortWait) {
  busy("a2", 1000);
  const std::optional<WaitingOffer> found = offer();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->wait_s, 1000);
  EXPECT_DOUBLE_EQ(found->earlier_s, 12000 - (1000 + 6000));
  EXPECT_EQ(found->more_gpus, 4);
  EXPECT_THAT(found->later_nodes, IsEmpty());
}

TEST_F(WaitingOfferTest, NotWhenTheWaitIsLongerThanWhatItSaves) {
  busy("a2", 6000);
  EXPECT_FALSE(offer());
  snapshot.busy[0].free_in_s = 5900;  // 100 s are less than predictions are good for
  EXPECT_FALSE(offer());
  snapshot.busy[0].free_in_s = 5700;
  EXPECT_TRUE(offer());
}

TEST_F(WaitingOfferTest, NothingIsPlannedForWaitsThatCannotPay) {
  busy("a2", 12000);
  busy("a3", std::nullopt);
  EXPECT_FALSE(offer());
  EXPECT_EQ(calls, 0);
}

TEST_F(WaitingOfferTest, TheBestOfTheNextFewTimesWithinTheTimeLimit) {
  busy("a2", 1000);  // ends at 7000
  busy("a3", 2000);  // ends at 6000
  busy("a4", 4500);  // ends at 7500
  busy("a5", 5000);  // too many to look at
  busy("a6", std::nullopt);
  const std::optional<WaitingOffer> found = offer();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->wait_s, 2000);
  EXPECT_EQ(found->more_gpus, 8);
  EXPECT_THAT(found->later_nodes, ElementsAre("a4", "a5", "a6"));
  EXPECT_EQ(calls, 3);
  EXPECT_DOUBLE_EQ(spent_s, 0.3);
}

TEST_F(WaitingOfferTest, NodesThatComeFreeTogetherAreOneTime) {
  busy("a2", 1000);
  busy("a3", 1030);
  busy("a4", 1059);
  const std::optional<WaitingOffer> found = offer();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->wait_s, 1059);
  EXPECT_EQ(calls, 1);
}

TEST_F(WaitingOfferTest, SaysUntilWhenForWhatAndHow) {
  setenv("TZ", "UTC", 1);
  tzset();
  const int64_t noon = 1'700'049'600;  // 2023-11-15 12:00
  EXPECT_EQ(waiting_text({1000, 5000, 4, {}}, noon),
            "note: waiting until 12:16 for 4 more GPUs would end the training 84 min earlier: "
            "--sailor-wait=nodes\n");
  EXPECT_EQ(waiting_text({50000, 5000, 1, {"b2", "b3", "b1", "c"}}, noon),
            "note: waiting until 2023-11-16T01:53 for 1 more GPU would end the training 84 min earlier: "
            "--sailor-wait=nodes --exclude=b[1-3],c\n");
  EXPECT_THAT(waiting_text({1000, 5000, 0, {}}, noon), testing::HasSubstr("for other GPUs"));
}

}  // namespace
}  // namespace sailor
