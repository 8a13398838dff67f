// Collectives compared with the planner's arithmetic, and what is fitted to them.
#include "profiler/links/ring_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "profiler/links/link_fit.h"

namespace sailor {
namespace {

using Scope = NetworkProfile::Scope;

// Eight GPUs of a node: a message takes 15 us and 150 GB/s, a step of a collective 2 us and 250 GB/s.
NetworkFile measured_node() {
  NetworkFile network;
  const LinkEnd x{"X", "z", 0};
  NetworkFile::Link& link = network.link(x, x, Scope::intra_node, Transport::nccl);
  std::vector<NetworkMeasurement> all_reduce, gather;
  for (int64_t bytes = 4096; bytes <= 1 << 30; bytes *= 4) {
    const auto size = static_cast<double>(bytes);
    NetworkMeasurement m{.bytes = bytes, .seconds = 15e-6 + size / 150e9, .samples = 15, .error = 0.01};
    link.messages.push_back(m);
    m.seconds = 14 * (2e-6 + size / 8 / 250e9);
    all_reduce.push_back(m);
    m.seconds /= 2;
    gather.push_back(m);
  }
  fit_curve(link);
  network.collective("all_reduce", {"8 x X in z"}, 8, 1, Transport::nccl).measurements = all_reduce;
  network.collective("all_gather", {"8 x X in z"}, 8, 1, Transport::nccl).measurements = gather;
  return network;
}

double worst_error(const NetworkFile& network) {
  double worst = 0;
  for (const NetworkFile::Collective& c : network.collectives)
    for (const NetworkMeasurement& m : c.measurements) {
      const auto predicted_s = ring_time_s(network, c, static_cast<double>(m.bytes));
      worst = std::max(worst, std::abs(predicted_s.value_or(1e9) / m.seconds - 1));
    }
  return worst;
}

TEST(RingCheck, StepsOfCollectivesPredictThemWhereMessagesDoNot) {
  NetworkFile network = measured_node();
  EXPECT_GT(worst_error(network), 0.6);
  fit_steps(network);
  EXPECT_LT(worst_error(network), 0.05);
  EXPECT_NEAR(network.links[0].step_bytes_per_s, 250e9, 10e9);
  EXPECT_NEAR(network.links[0].bytes_per_s, 150e9, 5e9) << "messages keep their rate";
}

TEST(RingCheck, LinksBetweenNodesTakeTheAllReduceOfOneRankPerNode) {
  NetworkFile network = measured_node();
  const LinkEnd x{"X", "z", 0};
  network.link(x, x, Scope::inter_node, Transport::nccl).bytes_per_s = 20e9;
  fit_steps(network);
  EXPECT_EQ(network.links[1].step_bytes_per_s, 0) << "that of a node says nothing of it";
  const NetworkMeasurement m{.bytes = 1 << 20, .seconds = 1e-3, .samples = 15};
  NetworkFile::Collective& pair = network.collective("all_reduce", {"2 x X in z"}, 2, 2, Transport::nccl);
  pair.measurements = {m};
  fit_steps(network);
  EXPECT_EQ(network.links[1].step_bytes_per_s, 0) << "one size is no rate";
  for (const int64_t bytes : {4 << 20, 16 << 20, 64 << 20})
    pair.measurements.push_back(
        {.bytes = bytes, .seconds = static_cast<double>(bytes) / 10e9, .samples = 15});
  fit_steps(network);
  EXPECT_NEAR(network.links[1].step_bytes_per_s, 10e9, 1e9);
}

TEST(RingCheck, SocketsBroadcastsAndMissingLinksAreNotPredicted) {
  NetworkFile network = measured_node();
  const auto predicted = [&](const char* operation, const std::string& member, int ranks, int nodes,
                             Transport transport) {
    return ring_time_s(network, network.collective(operation, {member}, ranks, nodes, transport), 1e6)
        .has_value();
  };
  EXPECT_TRUE(predicted("reduce_scatter", "8 x X in z", 8, 1, Transport::nccl));
  EXPECT_FALSE(predicted("broadcast", "8 x X in z", 8, 1, Transport::nccl));
  EXPECT_FALSE(predicted("all_reduce", "8 x X in z", 8, 1, Transport::sockets));
  EXPECT_FALSE(predicted("all_reduce", "8 x X in z", 8, 2, Transport::nccl)) << "no link between nodes";
  EXPECT_FALSE(predicted("all_reduce", "8 x Y", 8, 1, Transport::nccl));
  EXPECT_FALSE(predicted("all_reduce", "written by hand", 8, 1, Transport::nccl));
}

}  // namespace
}  // namespace sailor
