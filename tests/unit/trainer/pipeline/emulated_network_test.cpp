// Messages between emulated devices take the time of their link, and share what a node shares.
#include "trainer/pipeline/emulated_network.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

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
      s.tp = tp;
      s.node = node;
      return s;
    };
    plan.pipelines = {{1, {stage(0, 2, "a"), stage(1, 1, "a"), stage(2, 1, "b")}}};
  }
  std::unique_ptr<EmulatedNetwork> rank(int r) {
    return std::make_unique<EmulatedNetwork>(plan, r, catalog, network, directory);
  }
  static double in_s(Clock::time_point when) {
    return std::chrono::duration<double>(when - Clock::now()).count();
  }
};

TEST_F(EmulatedNetworkTest, AMessageTakesLatencyAndItsBytes) {
  use("fast");
  EXPECT_NEAR(in_s(rank(0)->departure(0, 2, 200)), 1 + 2, 0.5);
  EXPECT_NEAR(in_s(rank(0)->departure(0, 3, 200)), 10 + 20, 0.5);
}

TEST_F(EmulatedNetworkTest, MessagesOfOnePortFollowEachOtherAndLatencyOverlaps) {
  use("fast");
  const auto network = rank(0);
  EXPECT_NEAR(in_s(network->departure(0, 2, 200)), 1 + 2, 0.5);
  EXPECT_NEAR(in_s(network->departure(0, 2, 200)), 1 + 4, 0.5);
  EXPECT_NEAR(in_s(network->departure(0, 3, 100)), 10 + 10, 0.5) << "another port";
}

TEST_F(EmulatedNetworkTest, RanksOfANodeShareItsInterface) {
  use("fast");
  const auto first = rank(0), second = rank(2);
  EXPECT_NEAR(in_s(first->departure(0, 3, 100)), 10 + 10, 0.5);
  EXPECT_NEAR(in_s(second->departure(2, 3, 100)), 10 + 20, 0.5);
  EXPECT_NEAR(in_s(rank(3)->departure(3, 0, 100)), 10 + 10, 0.5) << "another node";
}

TEST_F(EmulatedNetworkTest, ATpGroupAndRealDevicesAreNotDelayed) {
  use("fast");
  EXPECT_EQ(rank(0)->departure(0, 1, 1 << 20), Clock::time_point{});
  use("real");
  EXPECT_EQ(rank(0)->departure(0, 3, 1 << 20), Clock::time_point{});
}

TEST_F(EmulatedNetworkTest, AnUnusableDirectoryIsAnErrorThatNamesIt) {
  use("fast");
  EXPECT_THROW(EmulatedNetwork(plan, 0, catalog, network, "/proc/nowhere"), std::runtime_error);
}

}  // namespace
}  // namespace sailor
