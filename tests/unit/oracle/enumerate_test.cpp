// The enumeration against a dumber one: every sequence of cells, nothing collapsed, nothing cut off.
#include "tests/oracle/enumerate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/oracle/generate.h"
#include "tests/oracle/score.h"

namespace sailor::oracle {
namespace {

// All plans that count, in no clever order. The caller keeps problems tiny.
class EveryPlan {
 public:
  explicit EveryPlan(const Problem& problem) : problem_(problem) {
    for (const NodeOfCluster& node : problem.nodes) gpus_ += static_cast<int>(node.free.size());
  }

  std::vector<Score> run() {
    std::set<int> microbatches;
    for (const TypeOfGpu& type : problem_.types)
      for (const auto& [key, cell] : type.times) microbatches.insert(key.first);
    for (int microbatch : microbatches) {
      cells_.clear();
      for (int t = 0; t < static_cast<int>(problem_.types.size()); ++t)
        for (int z = 0; z < static_cast<int>(problem_.zones.size()); ++z)
          for (int tp : {1, 2, 4})
            if (problem_.types[t].times.contains({microbatch, tp})) cells_.push_back({t, z, tp});
      plan_.microbatch = microbatch;
      plan_.cuts = {0};
      cut_from(0);
    }
    return std::move(scores_);
  }

 private:
  void cut_from(int layer) {
    if (layer == problem_.layers) {
      for (int replicas = 1; replicas * plan_.stages() <= gpus_; ++replicas) {
        plan_.pipelines.assign(replicas, std::vector<Cell>(plan_.stages()));
        fill(0, gpus_);
      }
      return;
    }
    for (int end = layer + 1; end <= problem_.layers; ++end) {
      plan_.cuts.push_back(end);
      cut_from(end);
      plan_.cuts.pop_back();
    }
  }

  // More GPUs than the cluster has in all are never tried: the one shortcut.
  void fill(int cell, int gpus_left) {
    const int P = plan_.stages();
    if (cell == P * plan_.replicas()) {
      if (violation(problem_, plan_).empty()) scores_.push_back(score(problem_, plan_));
      return;
    }
    for (const Cell& choice : cells_) {
      if (choice.tp > gpus_left) continue;
      plan_.pipelines[cell / P][cell % P] = choice;
      fill(cell + 1, gpus_left - choice.tp);
    }
  }

  const Problem& problem_;
  int gpus_ = 0;
  std::vector<Cell> cells_;
  GridPlan plan_;
  std::vector<Score> scores_;
};

// Checked point by point: every plan is covered, and every point of the front is a plan.
void expect_same(const Problem& problem, const std::vector<Score>& plans, uint64_t seed) {
  const ParetoFront front = enumerate(problem).front;
  ASSERT_EQ(front.empty(), plans.empty()) << "seed " << seed;
  for (const Score& plan : plans)
    ASSERT_TRUE(front.covers(plan.iteration_s * (1 + 1e-11), plan.usd * (1 + 1e-11))) << "seed " << seed;
  for (const FrontPoint& point : front.points())
    ASSERT_TRUE(std::any_of(plans.begin(), plans.end(),
                            [&](const Score& plan) {
                              return std::abs(plan.iteration_s / point.iteration_s - 1) < 1e-11 &&
                                     std::abs(plan.usd / point.usd - 1) < 1e-11;
                            }))
        << "seed " << seed << ": " << to_string(problem, point.plan);
}

TEST(OracleEnumeration, EqualsADumberEnumeration) {
  int with_plans = 0, several_regions = 0, mixed = 0;
  for (uint64_t seed = 1; seed <= 250; ++seed) {
    const Problem problem = generate(seed, {2, 2, 5, 5});
    const std::vector<Score> plans = EveryPlan(problem).run();
    expect_same(problem, plans, seed);
    with_plans += plans.empty() ? 0 : 1;
    several_regions += problem.zones.back().region > 0 ? 1 : 0;
    const Enumeration all = enumerate(problem);
    for (const FrontPoint& point : all.front.points())
      mixed += point.plan.replicas() > 1 && point.plan.pipelines[0] != point.plan.pipelines[1] ? 1 : 0;
  }
  EXPECT_GT(with_plans, 150);
  EXPECT_GT(several_regions, 20);
  EXPECT_GT(mixed, 20);
}

TEST(OracleEnumeration, EqualsADumberEnumerationWithThreeTypes) {
  for (uint64_t seed = 300; seed < 360; ++seed) {
    const Problem problem = generate(seed, {3, 2, 5, 4});
    expect_same(problem, EveryPlan(problem).run(), seed);
  }
}

TEST(OracleFront, KeepsWhatNothingCovers) {
  ParetoFront front;
  front.add({2, 2, {}});
  front.add({1, 5, {}});
  front.add({4, 1, {}});
  EXPECT_TRUE(front.covers(2, 2));
  EXPECT_TRUE(front.covers(3, 2.5));
  EXPECT_FALSE(front.covers(3, 1.5));
  EXPECT_FALSE(front.covers(0.5, 9));
  EXPECT_EQ(front.fastest_within(1.9)->iteration_s, 4);
  EXPECT_EQ(front.fastest_within(2)->iteration_s, 2);
  EXPECT_EQ(front.fastest_within(0.5), nullptr);
  EXPECT_EQ(front.cheapest_within(3)->usd, 2);
  EXPECT_EQ(front.cheapest_within(0.9), nullptr);
  front.add({1.5, 0.5, {}});  // covers two of the three
  ASSERT_EQ(front.points().size(), 2u);
  EXPECT_EQ(front.fastest().usd, 5);
  EXPECT_EQ(front.cheapest().iteration_s, 1.5);
}

}  // namespace
}  // namespace sailor::oracle
