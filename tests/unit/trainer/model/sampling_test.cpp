#include "trainer/model/sampling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

namespace sailor {
namespace {

// Probabilities 0.1, 0.4, 0.2, 0.3 up to a factor.
at::Tensor some_logits() {
  return at::tensor({0.1, 0.4, 0.2, 0.3}, at::kDouble).log() + 5;
}

std::map<int64_t, int> draw(const SamplingOptions& options, int times) {
  Sampler sampler(options);
  std::map<int64_t, int> counts;
  for (int i = 0; i < times; ++i) ++counts[sampler.next(some_logits())];
  return counts;
}

TEST(Sampler, DrawsTokensWithTheirProbabilities) {
  constexpr int kTimes = 20'000;
  for (const double temperature : {1.0, 0.5}) {
    const std::map<int64_t, int> counts = draw({.temperature = temperature}, kTimes);
    const at::Tensor p = some_logits().div(temperature).softmax(0);
    for (int64_t token = 0; token < 4; ++token) {
      const auto expected = p[token].item<double>();
      // Five deviations.
      EXPECT_NEAR(counts.at(token) / static_cast<double>(kTimes), expected,
                  5 * std::sqrt(expected * (1 - expected) / kTimes));
    }
  }
}

TEST(Sampler, WithoutTemperatureTheMostLikelyOne) {
  EXPECT_EQ(draw({.temperature = 0}, 10), (std::map<int64_t, int>{{1, 10}}));
  Sampler sampler({.temperature = 0});
  EXPECT_EQ(sampler.next(at::tensor({1.0f, 3.0f, 2.0f}).to(at::kBFloat16)), 1);
}

TEST(Sampler, TopKAndTopPLeaveOutTheUnlikely) {
  const auto tokens = [](const SamplingOptions& options) {
    std::set<int64_t> all;
    for (const auto& [token, count] : draw(options, 2000)) all.insert(token);
    return all;
  };
  EXPECT_EQ(tokens({.top_k = 1}), (std::set<int64_t>{1}));
  EXPECT_EQ(tokens({.top_k = 2}), (std::set<int64_t>{1, 3}));
  EXPECT_EQ(tokens({.top_k = 9}).size(), 4u);
  EXPECT_EQ(tokens({.top_p = 0.3}), (std::set<int64_t>{1})) << "one token at least";
  EXPECT_EQ(tokens({.top_p = 0.65}), (std::set<int64_t>{1, 3}));
  EXPECT_EQ(tokens({.top_p = 0.75}), (std::set<int64_t>{1, 2, 3}));
}

TEST(Sampler, TheSeedDecides) {
  Sampler a({.seed = 7}), b({.seed = 7}), c({.seed = 8});
  int same = 0;
  for (int i = 0; i < 50; ++i) {
    const int64_t token = a.next(some_logits());
    EXPECT_EQ(b.next(some_logits()), token);
    same += c.next(some_logits()) == token;
  }
  EXPECT_LT(same, 50);
}

}  // namespace
}  // namespace sailor
