#include "trainer/parallel/matrix_moves.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <stdexcept>

namespace sailor {
namespace {

// `ranks` GPUs, each a pipeline of one stage, `per_node` of them on a node.
RankLayout layout_of(int ranks, int per_node) {
  Plan plan;
  for (int r = 0; r < ranks; ++r) {
    PlanStage stage;
    stage.end_layer = 4;
    stage.shape.tp = 1;
    stage.node = "node" + std::to_string(r / per_node);
    stage.gpus = {r % per_node};
    PlanPipeline pipeline;
    pipeline.stages.push_back(stage);
    plan.pipelines.push_back(pipeline);
  }
  return RankLayout(plan);
}

struct Problem {
  std::vector<double> work;
  std::vector<std::vector<MatrixRange>> held;
  std::vector<int64_t> elements;
};

// Every matrix is cut at random, every part held by one to three ranks.
Problem random_problem(uint64_t seed, int ranks) {
  std::mt19937_64 random(seed);
  Problem problem;
  std::map<int, std::size_t> slices;
  for (std::size_t m = 0; m < 1 + random() % 12; ++m) {
    const auto elements = static_cast<int64_t>(20 + random() % 100);
    problem.work.push_back(static_cast<double>(elements * elements));
    problem.elements.push_back(elements);
    problem.held.emplace_back();
    std::set<int> used;
    for (int64_t first = 0; first < elements;) {
      const int64_t count = std::min<int64_t>(elements - first, 1 + static_cast<int64_t>(random() % 60));
      for (std::size_t copy = 0; copy < 1 + random() % 3; ++copy) {
        const int rank = static_cast<int>(random() % static_cast<uint64_t>(ranks));
        if (used.insert(rank).second || copy == 0)
          problem.held.back().push_back({rank, slices[rank]++, 0, first, count});
      }
      first += count;
    }
  }
  return problem;
}

TEST(MatrixMoves, OwnersGetEveryElementOnceAndEverybodyHasHisBack) {
  const RankLayout layout = layout_of(6, 2);
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const Problem problem = random_problem(seed, 6);
    std::set<std::size_t> seen;
    for (const auto& round : plan_matrix_moves(layout, problem.work, problem.held)) {
      std::set<int> owners;
      for (const MatrixMoves& moves : round) {
        EXPECT_TRUE(seen.insert(moves.matrix).second);
        EXPECT_TRUE(owners.insert(moves.owner).second) << "one matrix of an owner in a round";
        const std::vector<MatrixRange>& held = problem.held[moves.matrix];
        EXPECT_TRUE(std::any_of(held.begin(), held.end(),
                                [&](const MatrixRange& range) { return range.rank == moves.owner; }));
        EXPECT_EQ(moves.returned.size(), held.size());
        int64_t next = 0;
        for (const MatrixRange& range : moves.gathered) {
          ASSERT_EQ(range.first, next);
          next += range.count;
          // It is part of what that rank holds, at that place of that slice.
          EXPECT_TRUE(std::any_of(held.begin(), held.end(), [&](const MatrixRange& whole) {
            return whole.rank == range.rank && whole.slice == range.slice &&
                   range.first - whole.first == range.offset && range.offset >= 0 &&
                   range.offset + range.count <= whole.count;
          }));
        }
        EXPECT_EQ(next, problem.elements[moves.matrix]);
      }
    }
    EXPECT_EQ(seen.size(), problem.work.size());
  }
}

TEST(MatrixMoves, WorkIsDividedAmongTheHolders) {
  const RankLayout layout = layout_of(4, 4);
  std::vector<MatrixRange> all;
  for (int rank = 0; rank < 4; ++rank) all.push_back({rank, 0, 0, 0, 10});
  const auto rounds = plan_matrix_moves(layout, std::vector<double>(9, 1.0), {9, all});
  ASSERT_EQ(rounds.size(), 3u);
  EXPECT_EQ(rounds[0].size(), 4u);
  EXPECT_EQ(rounds[2].size(), 1u);
  // The large one is as much work as the others together.
  const auto unlike = plan_matrix_moves(layout, {1, 1, 6, 1, 1, 1, 1}, {7, all});
  for (const MatrixMoves& moves : unlike[1]) EXPECT_NE(moves.owner, unlike[0][0].owner);
}

TEST(MatrixMoves, WhatIsNearIsTakenFirst) {
  const RankLayout layout = layout_of(6, 2);
  // Rank 5 owns it: 4 is on its node.
  const std::vector<MatrixRange> held = {{0, 0, 0, 0, 8}, {4, 0, 0, 0, 8}, {5, 0, 0, 8, 2}, {1, 0, 0, 8, 2}};
  for (const auto& round :
       plan_matrix_moves(layout, {3, 2, 1}, {{{0, 1, 0, 0, 4}}, {{1, 1, 0, 0, 4}}, held})) {
    for (const MatrixMoves& moves : round) {
      if (moves.matrix != 2 || moves.owner != 4) continue;
      ASSERT_EQ(moves.gathered.size(), 2u);
      EXPECT_EQ(moves.gathered[0].rank, 4);
      EXPECT_EQ(moves.gathered[1].rank, 5);
      return;
    }
  }
  FAIL() << "rank 4 has no work and the lowest number";
}

TEST(MatrixMoves, AGapIsALogicError) {
  EXPECT_THROW(plan_matrix_moves(layout_of(1, 1), {1}, {{{0, 0, 0, 0, 2}, {0, 1, 0, 3, 2}}}),
               std::logic_error);
}

}  // namespace
}  // namespace sailor
