#include "profiler/links/link_fit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace sailor {
namespace {

std::vector<NetworkMeasurement> line(double latency_s, double bytes_per_s, int sizes, int pairs = 1) {
  std::vector<NetworkMeasurement> messages;
  for (int64_t bytes = 4096; sizes-- > 0; bytes *= 4)
    messages.push_back({.bytes = bytes,
                        .seconds = latency_s + static_cast<double>(bytes) / bytes_per_s,
                        .samples = 20,
                        .error = 0.01,
                        .pairs = pairs});
  return messages;
}

TEST(LinkFit, RecoversALine) {
  for (const double latency_s : {1e-6, 2e-5, 1e-2}) {
    for (const double bytes_per_s : {1e7, 1e9, 5e10}) {
      const LinkFit fit = fit_link(line(latency_s, bytes_per_s, 12));
      EXPECT_NEAR(fit.latency_s / latency_s, 1, 0.01);
      // Never faster than the largest message that was measured, which the latency still slows a little.
      const double largest = 4096 * std::pow(4, 11);
      EXPECT_NEAR(fit.bytes_per_s * (latency_s + largest / bytes_per_s) / largest, 1, 1e-6);
    }
  }
}

TEST(LinkFit, TheEndsCountNotWhatCachesDoInBetween) {
  std::vector<NetworkMeasurement> messages = line(2e-5, 1e9, 10);
  for (size_t i = 3; i < 7; ++i) messages[i].seconds *= 0.4;
  const LinkFit fit = fit_link(messages);
  EXPECT_NEAR(fit.latency_s, 2e-5, 1e-6);
  EXPECT_NEAR(fit.bytes_per_s, 1e9, 1e7);
}

TEST(LinkFit, OneSizeIsARateWithoutLatency) {
  const LinkFit fit = fit_link({{.bytes = 1000, .seconds = 1e-3, .samples = 5, .error = 0.01}});
  EXPECT_NEAR(fit.bytes_per_s, 1e6, 1);
  EXPECT_NEAR(fit.line_s(1000), 1e-3, 1e-9);
}

// Whatever is measured, the curve keeps what it promises at every size, those never measured included.
TEST(LinkFit, NoiseNeverMakesNonsense) {
  std::mt19937 random(7);
  std::lognormal_distribution<double> noise(0, 0.8);
  std::uniform_real_distribution<double> exponent(0, 1);
  for (int trial = 0; trial < 300; ++trial) {
    const double latency_s = std::pow(10, -6 + 4 * exponent(random)),
                 bytes_per_s = std::pow(10, 6 + 5 * exponent(random));
    NetworkFile::Link link;
    double most = 0, smallest_s = 0;
    for (const int pairs : {1, 4}) {
      for (NetworkMeasurement m : line(latency_s, bytes_per_s / pairs, 1 + trial % 10, pairs)) {
        m.seconds *= noise(random);
        m.error = 0.001 * std::pow(1000, exponent(random));
        if (pairs == 1) most = std::max(most, static_cast<double>(m.bytes) / m.seconds);
        link.messages.push_back(m);
      }
    }
    smallest_s = link.messages.front().seconds;
    std::shuffle(link.messages.begin(), link.messages.end(), random);
    fit_curve(link);
    ASSERT_TRUE(link.has_curve());
    const LinkCurve curve = link.curve();
    EXPECT_GE(curve.latency_s(), 0);
    EXPECT_LE(curve.latency_s(), std::max(smallest_s, link.points.front().second) * (1 + 1e-9));
    for (const double senders : {1.0, 2.0, 8.0}) {
      double before = 0;
      for (double bytes = 1; bytes < 1e13; bytes *= 1.7) {
        const double time_s = curve.time_s(bytes, senders);
        EXPECT_GE(time_s, before) << trial << ": " << bytes;
        EXPECT_GE(time_s * (1 + 1e-9), bytes / most) << trial << ": " << bytes;
        EXPECT_GE(time_s, curve.latency_s());
        before = time_s;
      }
    }
    EXPECT_GE(link.node_bytes_per_s, link.bytes_per_s);
  }
}

TEST(LinkFit, WhatPairsShareIsTheRateOfTheNode) {
  NetworkFile::Link link;
  link.messages = line(1e-5, 1e9, 10);
  const auto together = line(1e-5, 5e8, 10, 4);  // four at half the rate each
  link.messages.insert(link.messages.end(), together.begin(), together.end());
  fit_curve(link);
  EXPECT_NEAR(link.bytes_per_s, 1e9, 1e6);
  EXPECT_NEAR(link.node_bytes_per_s, 2e9, 2e6);
  EXPECT_NEAR(link.curve().time_s(1e9, 2), 1.0, 0.01);
  EXPECT_NEAR(link.curve().time_s(1e9, 4), 2.0, 0.01);
  link.messages = together;
  fit_curve(link);
  EXPECT_FALSE(link.has_curve()) << "nothing is known of one pair";
}

}  // namespace
}  // namespace sailor
