// Tokens that are split over GPUs with the same weights.
#include "trainer/model/context_parallel.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "tests/unit/trainer/comm/ranks.h"

namespace sailor {
namespace {

// Fewer tokens than ranks, and numbers that the ranks do not divide.
constexpr TokenGrid kContextGrids[] = {{1, 2}, {1, 5}, {2, 6}, {3, 7}};

// Of [sequences, length, columns]: a leaf of the graph.
at::Tensor own_rows(const at::Tensor& whole, const TensorParallel& tp) {
  const BlockRange mine = tp.region();
  return whole.view({-1, whole.size(2)})
      .narrow(0, static_cast<int64_t>(mine.first), static_cast<int64_t>(mine.count))
      .clone()
      .set_requires_grad(true);
}

TEST(TokenShares, CoverAllTokensInTheOrderOfGpus) {
  for (const ReplicaShape& shape : {ReplicaShape{1, 1}, {3, 1}, {1, 4}, {2, 3}, {4, 2}}) {
    for (const int64_t tokens : {0, 1, 5, 12, 61}) {
      std::size_t next = 0;
      for (int gpu = 0; gpu < shape.gpus(); ++gpu) {
        const BlockRange share = token_share(tokens, shape, gpu);
        if (share.count > 0) {
          EXPECT_EQ(share.first, next);
        }
        EXPECT_LE(share.count, token_share(tokens, shape, 0).count);
        next += share.count;
      }
      EXPECT_EQ(next, static_cast<std::size_t>(tokens));
    }
  }
}

TEST(ContextParallel, TokensAreGatheredOfABlockOfColumnsAndScatteredAgain) {
  for (const int size : {2, 3, 4}) {
    for (const TokenGrid& grid : kContextGrids) {
      TestJob job("thread", size);
      const int64_t columns = 2 * size;
      const at::Tensor whole =
          at::arange(grid.tokens() * columns, at::kDouble).view({grid.sequences, grid.length, columns});
      job.run([&](CommFactory& factory) {
        const auto group = factory.create("cp", all_ranks(size));
        const TensorParallel tp{nullptr, grid, group.get()};
        const at::Tensor block = whole.narrow(2, 2 * group->rank(), 2);
        const at::Tensor own = own_rows(whole, tp);
        const at::Tensor gathered = gather_tokens(own, tp);
        EXPECT_TRUE(at::equal(gathered, block));
        EXPECT_TRUE(at::equal(scatter_tokens(gathered, tp), own));
        // The gradient of an element comes back to where the element came from.
        torch::autograd::backward({(gathered * block).sum()});
        EXPECT_TRUE(at::equal(own.grad(), own));
        at::Tensor of_block = block.clone().set_requires_grad(true);
        torch::autograd::backward({(scatter_tokens(of_block, tp) * own.detach()).sum()});
        EXPECT_TRUE(at::equal(of_block.grad(), block));
      });
    }
  }
}

TEST(RingTokens, AreOnceEverySequenceFromTheFrontAndFromTheBack) {
  for (const int64_t length : {1, 7, 16, 45}) {
    for (const int ring : {1, 2, 3, 5}) {
      std::vector<int> times(static_cast<std::size_t>(length));
      for (int rank = 0; rank < ring; ++rank) {
        const RingTokens own(length, ring, rank);
        EXPECT_LE(own.front.end(), own.back.first + (own.back.count == 0 ? length : 0));
        for (const RingTokens::Run& run : {own.front, own.back})
          for (int64_t token = run.first; token < run.end(); ++token)
            ++times[static_cast<std::size_t>(token)];
      }
      EXPECT_EQ(times, std::vector<int>(static_cast<std::size_t>(length), 1)) << length << " over " << ring;
    }
  }
  const RingTokens second(16, 2, 1);
  EXPECT_EQ(second.front.first, 4);
  EXPECT_EQ(second.back.first, 8);
}

TEST(ContextParallel, RingsGatherTheirTokensOfAPartOfTheHeads) {
  struct Rings {
    int members, ring;
  };
  for (const Rings& rings : {Rings{2, 2}, {3, 3}, {4, 2}, {6, 3}}) {
    for (const TokenGrid& grid : kContextGrids) {
      TestJob job("thread", rings.members);
      const int64_t parts = rings.members / rings.ring, columns = 2 * parts;
      const at::Tensor whole =
          at::arange(grid.tokens() * columns, at::kDouble).view({grid.sequences, grid.length, columns});
      job.run([&](CommFactory& factory) {
        const auto group = factory.create("cp", all_ranks(rings.members));
        const TensorParallel tp{nullptr, grid, group.get(), rings.ring};
        const RingTokens tokens(grid.length, rings.ring, ring_rank(tp));
        EXPECT_EQ(ring_member(tp, ring_rank(tp)), group->rank());
        const at::Tensor block = whole.narrow(2, 2 * (group->rank() % parts), 2);
        const at::Tensor expected = at::cat({block.narrow(1, tokens.front.first, tokens.front.count),
                                             block.narrow(1, tokens.back.first, tokens.back.count)},
                                            1);
        const at::Tensor own = own_rows(whole, tp);
        const at::Tensor gathered = gather_tokens(own, tp);
        EXPECT_TRUE(at::equal(gathered, expected)) << gathered << expected;
        EXPECT_TRUE(at::equal(scatter_tokens(gathered, tp), own));
        torch::autograd::backward({(gathered * expected).sum()});
        EXPECT_TRUE(at::equal(own.grad(), own));
      });
    }
  }
}

TEST(ContextParallel, AloneNothingIsExchanged) {
  const at::Tensor x = at::ones({2, 3, 4});
  EXPECT_TRUE(gather_tokens(x, {}).is_same(x));
  EXPECT_TRUE(scatter_tokens(x, {}).is_same(x));
}

}  // namespace
}  // namespace sailor
