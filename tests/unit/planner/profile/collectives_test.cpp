#include "planner/profile/collectives.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace sailor {
namespace {

const LinkCurve kFast = LinkCurve::from_rates(1e-6, 100e9, 0);
const LinkCurve kNetwork = LinkCurve::from_rates(1e-5, 10e9, 20e9);

TEST(Collectives, OneRankAndNoBytesTakeNoTime) {
  EXPECT_EQ(ring_pass_s({1, 1, 1, &kFast, &kNetwork}, 1e9), 0);
  EXPECT_EQ(ring_all_reduce_s({1, 1, 1, nullptr, nullptr}, 1e9), 0);
  EXPECT_EQ(all_reduce_s({1, 1, 1, nullptr, nullptr}, 1e9), 0);
  EXPECT_EQ(ring_all_reduce_s({4, 1, 1, &kFast, nullptr}, 0), 0);
}

TEST(Collectives, ARingOnOneNodeIsTheFormula) {
  // 3 steps of 1 MB at 100 GB/s and 1 us.
  EXPECT_DOUBLE_EQ(ring_pass_s({4, 1, 1, &kFast, nullptr}, 4e6), 3 * (1e-6 + 1e6 / 100e9));
  EXPECT_DOUBLE_EQ(ring_all_reduce_s({4, 1, 1, &kFast, nullptr}, 4e6), 2 * 3 * (1e-6 + 1e6 / 100e9));
}

TEST(Collectives, ARingOfOneRankANodeIsTheFormulaOfTheNetwork) {
  EXPECT_DOUBLE_EQ(ring_all_reduce_s({4, 4, 1, nullptr, &kNetwork}, 4e6), 2 * 3 * (1e-5 + 1e6 / 10e9));
  // Three rings share a node's 20 GB/s.
  EXPECT_DOUBLE_EQ(ring_all_reduce_s({4, 4, 3, nullptr, &kNetwork}, 4e6), 2 * 3 * (1e-5 + 3e6 / 20e9));
}

// 8 ranks on 2 nodes, 8 MB: steps of 1 MB. The four ranks of a node send the step between nodes together, a
// quarter each, and share 20 GB/s: 0.25 MB at 5 GB/s. Six steps inside a node and one between, by latency.
TEST(Collectives, ARingOverNodesGoesAtItsSlowestStepAndEachStepHasItsOwnLatency) {
  EXPECT_NEAR(ring_pass_s({8, 2, 1, &kFast, &kNetwork}, 8e6), 6 * 1e-6 + 1e-5 + 7 * (0.25e6 / 5e9), 1e-15);
  // With another ring on the node there is half as much for each.
  EXPECT_NEAR(ring_pass_s({8, 2, 2, &kFast, &kNetwork}, 8e6), 6 * 1e-6 + 1e-5 + 7 * (0.25e6 / 2.5e9), 1e-15);
  // Where the network is faster than the links inside a node, those decide.
  const LinkCurve wide = LinkCurve::from_rates(1e-5, 1e12, 0);
  EXPECT_NEAR(ring_pass_s({8, 2, 1, &kFast, &wide}, 8e6), 6 * 1e-6 + 1e-5 + 7 * (1e6 / 100e9), 1e-15);
}

TEST(Collectives, MeasuredPointsCountAsLatencyOfTheSmallestAndTheRest) {
  const LinkCurve points = LinkCurve::from_points({{1000, 1e-4}, {1001000, 1.1e-3}});
  EXPECT_NEAR(ring_all_reduce_s({2, 2, 1, nullptr, &points}, 2e6), 2 * points.time_s(1e6), 1e-15);
  EXPECT_NEAR(ring_all_reduce_s({2, 2, 1, nullptr, &points}, 100), 2 * 1e-4, 1e-15);
}

TEST(Collectives, StepsThatWereMeasuredCountInsteadOfMessages) {
  LinkCurve intra = LinkCurve::from_rates(15e-6, 150e9, 0), inter = LinkCurve::from_rates(30e-6, 20e9, 80e9);
  intra.set_steps(2e-6, 200e9);
  EXPECT_DOUBLE_EQ(ring_all_reduce_s({4, 1, 1, &intra, nullptr}, 4e6), 2 * 3 * (2e-6 + 1e6 / 200e9));
  EXPECT_DOUBLE_EQ(intra.time_s(1e6), 15e-6 + 1e6 / 150e9) << "messages are as they were";
  // The cards of a node are the limit, whatever a step could do alone.
  inter.set_steps(5e-6, 50e9);
  EXPECT_DOUBLE_EQ(ring_all_reduce_s({2, 2, 1, nullptr, &inter}, 2e6), 2 * (5e-6 + 1e6 / 50e9));
  EXPECT_DOUBLE_EQ(ring_all_reduce_s({2, 2, 4, nullptr, &inter}, 2e6), 2 * (5e-6 + 1e6 / 20e9));
}

// Four nodes of one rank: ring 2 (3 latencies + 3/4 of the bytes), tree 2 (2 latencies + all bytes). They
// meet where a quarter of the bytes takes a latency: at 4 x 1e-5 s x 10 GB/s = 400 kB.
TEST(Collectives, TheTreeIsChosenForManyNodesAndFewBytes) {
  const Ring ring{4, 4, 1, nullptr, &kNetwork};
  EXPECT_DOUBLE_EQ(all_reduce_s(ring, 100e3), 2 * (2 * 1e-5 + 100e3 / 10e9));
  EXPECT_LT(all_reduce_s(ring, 399e3), ring_all_reduce_s(ring, 399e3));
  EXPECT_DOUBLE_EQ(all_reduce_s(ring, 401e3), ring_all_reduce_s(ring, 401e3));
  // 64 nodes of 8 ranks: 6 levels between nodes, the 8 ranks of a node one after the other.
  const Ring large{512, 64, 1, &kFast, &kNetwork};
  EXPECT_NEAR(all_reduce_s(large, 8), 2 * (6 * 1e-5 + 8 * 1e-6), 1e-8);
  EXPECT_NEAR(ring_all_reduce_s(large, 8), 2 * (63 * 1e-5 + 448 * 1e-6), 1e-8);
}

TEST(Collectives, OneNodeHasNoTree) {
  const Ring ring{8, 1, 1, &kFast, nullptr};
  EXPECT_DOUBLE_EQ(all_reduce_s(ring, 8), ring_all_reduce_s(ring, 8));
}

TEST(Collectives, MoreBandwidthLessLatencyAndFewerBytesNeverTakeLonger) {
  std::mt19937_64 random(7);
  const auto uniform = [&](double low, double high) {
    return low * std::pow(high / low, static_cast<double>(random() >> 11) / 9007199254740992.0);
  };
  for (int i = 0; i < 3000; ++i) {
    double rates[] = {uniform(1e-6, 1e-3), uniform(1e9, 1e12), uniform(1e-6, 1e-3), uniform(1e8, 1e11),
                      uniform(1e8, 1e12)};
    const int nodes = 1 + static_cast<int>(random() % 16), each = 1 + static_cast<int>(random() % 8);
    const double sharing = static_cast<double>(1 + random() % 8), bytes = uniform(1, 1e10);
    const auto times = [&](double moved) {
      const LinkCurve intra = LinkCurve::from_rates(rates[0], rates[1], 0),
                      inter = LinkCurve::from_rates(rates[2], rates[3], rates[4]);
      const Ring ring{nodes * each, nodes, sharing, &intra, &inter};
      return std::pair(ring_all_reduce_s(ring, moved), all_reduce_s(ring, moved));
    };
    const auto before = times(bytes);
    EXPECT_LE(before.second, before.first);
    const auto fewer = times(bytes / uniform(1, 10));
    const size_t which = random() % 5;
    const bool is_latency = which == 0 || which == 2;
    rates[which] *= is_latency ? 1 / uniform(1, 10) : uniform(1, 10);
    const auto after = times(bytes);
    EXPECT_LE(after.first, before.first * (1 + 1e-12)) << i;
    EXPECT_LE(after.second, before.second * (1 + 1e-12)) << i;
    EXPECT_LE(fewer.first, before.first) << i;
    EXPECT_LE(fewer.second, before.second) << i;
  }
}

}  // namespace
}  // namespace sailor
