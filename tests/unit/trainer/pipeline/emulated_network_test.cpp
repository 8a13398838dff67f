// Messages between emulated devices take the time of their link, and share what a node shares.
#include "trainer/pipeline/emulated_network.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <vector>

#include "planner/spec/catalog.h"

namespace sailor {
namespace {

using Clock = LinkPacer::Clock;

constexpr const char* kCatalog = R"(sailor_catalog: 1
gpu_types:
  real: {memory: 1GiB, usd_per_hour: 1}
  fast: {memory: 1GiB, emulate: {profile: real, slowdown: 2}, usd_per_hour: 1}
)";
constexpr const char* kNetwork = R"({"sailor_network_profile": 1, "links": [
  {"from": {}, "to": {}, "scope": "intra_node", "latency_s": 1, "bytes_per_s": 100},
  {"from": {}, "to": {}, "scope": "inter_node", "latency_s": 10, "bytes_per_s": 10, "node_bytes_per_s": 10}]})";

struct EmulatedNetworkTest : testing::Test {
  std::string directory = testing::TempDir() + "/links." + std::to_string(getpid());
  Catalog catalog = parse_catalog(kCatalog, "catalog.yaml");
  NetworkProfile network = parse_network_profile(kNetwork, "network.json");
  Plan plan;

  EmulatedNetworkTest() { std::filesystem::create_directories(directory); }
  ~EmulatedNetworkTest() override { std::filesystem::remove_all(directory); }

  // Ranks 0 and 1 are a TP group on node a, 2 is on a as well, 3 on b.
  void use(const std::string& gpu_type) {
    const auto stage = [&](int first, int tp, const std::string& node) {
      PlanStage s;
      s.first_layer = first;
      s.end_layer = first + 1;
      s.gpu_type = gpu_type;
      s.zone = "z";
      s.shape.tp = tp;
      s.node = node;
      return s;
    };
    plan.pipelines = {{1, {stage(0, 2, "a"), stage(1, 1, "a"), stage(2, 1, "b")}}};
  }
  std::unique_ptr<EmulatedNetwork> rank(int r) {
    return std::make_unique<EmulatedNetwork>(plan, r, catalog, network, directory);
  }
  static LinkPacer::Passage posted(int from, int to, std::size_t bytes) {
    return {.from = from, .to = to, .bytes = bytes, .at = Clock::now(), .through = false};
  }
  static double seconds_until(Clock::time_point when) {
    return std::chrono::duration<double>(when - Clock::now()).count();
  }
  // Until the only message that is under way leaves.
  static double alone_s(EmulatedNetwork& network, int from, int to, std::size_t bytes) {
    LinkPacer::Passage passage = posted(from, to, bytes);
    while (!passage.through) network.take_turn(passage);
    return seconds_until(passage.leaves);
  }
  static bool at_once(EmulatedNetwork& network, int from, int to) {
    LinkPacer::Passage passage = posted(from, to, 1 << 20);
    network.take_turn(passage);
    return passage.through && passage.leaves == Clock::time_point{};
  }
  // Until each message leaves that is under way from now on: who was through with a turn first takes its
  // next.
  struct Sent {
    EmulatedNetwork& network;
    LinkPacer::Passage passage;
  };
  static std::vector<double> together_s(std::vector<Sent> all) {
    for (;;) {
      Sent* next = nullptr;
      for (Sent& sent : all)
        if (!sent.passage.through && (!next || sent.passage.at < next->passage.at)) next = &sent;
      if (!next) break;
      next->network.take_turn(next->passage);
    }
    std::vector<double> times;
    for (const Sent& sent : all) times.push_back(seconds_until(sent.passage.leaves));
    return times;
  }
};

TEST_F(EmulatedNetworkTest, AMessageTakesLatencyAndItsBytes) {
  use("fast");
  EXPECT_NEAR(alone_s(*rank(0), 0, 2, 200), 1 + 2, 0.5);
  EXPECT_NEAR(alone_s(*rank(0), 0, 3, 200), 10 + 20, 0.5);
}

TEST_F(EmulatedNetworkTest, MessagesOfOnePortFollowEachOtherAndLatencyOverlaps) {
  use("fast");
  const auto network = rank(0);
  EXPECT_NEAR(alone_s(*network, 0, 2, 200), 1 + 2, 0.5);
  EXPECT_NEAR(alone_s(*network, 0, 2, 200), 1 + 4, 0.5);
  EXPECT_NEAR(alone_s(*network, 0, 3, 100), 10 + 10, 0.5) << "another port";
}

TEST_F(EmulatedNetworkTest, RanksOfANodeShareItsInterface) {
  use("fast");
  const auto first = rank(0), second = rank(2);
  EXPECT_NEAR(alone_s(*first, 0, 3, 100), 10 + 10, 0.5);
  EXPECT_NEAR(alone_s(*second, 2, 3, 100), 10 + 20, 0.5);
  EXPECT_NEAR(alone_s(*rank(3), 3, 0, 100), 10 + 10, 0.5) << "another node";
}

TEST_F(EmulatedNetworkTest, MessagesThatAreUnderWayTogetherTakeTurns) {
  use("fast");
  const auto network = rank(0);
  // On one port, at 100 bytes/s: while the short one is under way each has half.
  const auto times = together_s({{*network, posted(0, 2, 1000)}, {*network, posted(0, 2, 100)}});
  EXPECT_NEAR(times[1], 1 + 2, 0.5) << "a short message waits for no long one to be through";
  EXPECT_NEAR(times[0], 1 + 11, 0.5) << "and nothing is lost";
}

TEST_F(EmulatedNetworkTest, RanksOfANodeTakeTurnsOnItsInterface) {
  use("fast");
  const auto first = rank(0), second = rank(2);
  const auto times = together_s({{*first, posted(0, 3, 1000)}, {*second, posted(2, 3, 100)}});
  EXPECT_NEAR(times[1], 10 + 20, 0.5);
  EXPECT_NEAR(times[0], 10 + 110, 0.5);
}

TEST_F(EmulatedNetworkTest, WhoWakesUpLateForATurnLosesNothing) {
  use("fast");
  const auto network = rank(0);
  LinkPacer::Passage passage = posted(0, 2, 200);
  passage.at -= std::chrono::seconds(1);  // when it could have begun
  while (!passage.through) network->take_turn(passage);
  EXPECT_NEAR(seconds_until(passage.leaves), 1 + 2 - 1, 0.5);
}

TEST_F(EmulatedNetworkTest, ATpGroupAndRealDevicesAreNotDelayed) {
  use("fast");
  EXPECT_TRUE(at_once(*rank(0), 0, 1));
  use("real");
  EXPECT_TRUE(at_once(*rank(0), 0, 3));
}

TEST_F(EmulatedNetworkTest, AnUnusableDirectoryIsAnErrorThatNamesIt) {
  use("fast");
  EXPECT_THROW(EmulatedNetwork(plan, 0, catalog, network, "/proc/nowhere"), std::runtime_error);
}

}  // namespace
}  // namespace sailor
