// Tokens that are split over a TP group between its tensor-parallel regions.
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "tests/unit/trainer/comm/ranks.h"
#include "trainer/model/dropout.h"
#include "trainer/model/tensor_parallel.h"
#include "trainer/model/weight_product.h"

namespace sailor {
namespace {

// Fewer tokens than ranks, and numbers that the ranks do not divide.
constexpr TokenGrid kGrids[] = {{1, 2}, {1, 5}, {2, 6}, {3, 7}};

bool close(const at::Tensor& a, const at::Tensor& b) {
  return at::allclose(a, b, 1e-12, 1e-12);
}

at::Tensor leaf_of(const at::Tensor& value) {
  return value.clone().set_requires_grad(true);
}

// The share of a rank in rows of all tokens.
at::Tensor share_of(const at::Tensor& rows, const TensorParallel& tp) {
  const BlockRange mine = tp.share();
  return rows.reshape({-1, rows.size(-1)})
      .narrow(0, static_cast<int64_t>(mine.first), static_cast<int64_t>(mine.count));
}

template <class Body>
void for_each_group(const Body& body) {
  for (const int size : {2, 3, 4}) {
    for (const TokenGrid& grid : kGrids) {
      TestJob job("thread", size);
      job.run([&](CommFactory& factory) {
        const auto group = factory.create("tp", all_ranks(size));
        body(TensorParallel{group.get(), grid});
      });
    }
  }
}

TEST(SequenceParallel, RegionsAreEnteredWithAllTokensAndLeftWithOnesOwn) {
  for_each_group([](const TensorParallel& tp) {
    const int64_t b = tp.split.sequences, s = tp.split.length;
    const at::Tensor whole = at::arange(b * s * 4, at::kDouble).view({b, s, 4});
    at::Tensor own = leaf_of(share_of(whole, tp)), partial = leaf_of(whole * (tp.group->rank() + 1));
    const at::Tensor entered = enter_tensor_parallel(own, tp), left = leave_tensor_parallel(partial, tp);
    const int size = tp.group->size(), sum = size * (size + 1) / 2;
    EXPECT_TRUE(at::equal(entered, whole));
    EXPECT_TRUE(at::equal(left, share_of(whole * sum, tp)));
    torch::autograd::backward({entered}, {whole * (tp.group->rank() + 1)});
    EXPECT_TRUE(at::equal(own.grad(), share_of(whole * sum, tp)));
    torch::autograd::backward({left}, {share_of(whole, tp)});
    EXPECT_TRUE(at::equal(partial.grad(), whole));
  });
}

TEST(SequenceParallel, ProductsAreThoseOfAllTokens) {
  const at::Tensor up = at::randn({12, 3}, at::kDouble), down = at::randn({12, 3}, at::kDouble),
                   up_bias = at::randn({12}, at::kDouble), bias = at::randn({3}, at::kDouble);
  for (const TokenGrid& grid : kGrids) {
    const at::Tensor input = at::randn({grid.sequences, grid.length, 3}, at::kDouble),
                     gradient = at::randn({grid.sequences, grid.length, 3}, at::kDouble);
    at::Tensor x = leaf_of(input), w1 = leaf_of(up), w2 = leaf_of(down), b1 = leaf_of(up_bias),
               b2 = leaf_of(bias);
    const at::Tensor y = at::matmul(at::matmul(x, w1.t()) + b1, w2) + b2;
    torch::autograd::backward({y}, {gradient});
    for (const int size : {2, 3, 4}) {
      TestJob job("thread", size);
      job.run([&](CommFactory& factory) {
        const auto group = factory.create("tp", all_ranks(size));
        const TensorParallel tp{group.get(), grid};
        const auto part = [&](const at::Tensor& w) { return w.chunk(size, 0)[tp.group->rank()]; };
        at::Tensor my_x = leaf_of(share_of(input, tp)), my_w1 = leaf_of(part(up)),
                   my_w2 = leaf_of(part(down)), my_b1 = leaf_of(part(up_bias)), my_b2 = leaf_of(bias);
        const at::Tensor inner = product_by_outputs(my_x, my_w1, my_b1, tp);
        EXPECT_EQ(inner.sizes(), at::IntArrayRef({grid.sequences, grid.length, 12 / size}));
        const at::Tensor mine = product_by_inputs(inner, my_w2, my_b2, tp);
        EXPECT_TRUE(close(mine, share_of(y, tp)));
        torch::autograd::backward({mine}, {share_of(gradient, tp)});
        EXPECT_TRUE(close(my_x.grad(), share_of(x.grad(), tp)));
        EXPECT_TRUE(close(my_w1.grad(), part(w1.grad())));
        EXPECT_TRUE(close(my_b1.grad(), part(b1.grad())));
        EXPECT_TRUE(close(my_w2.grad(), part(w2.grad())));
        at::Tensor of_bias = my_b2.grad().clone();
        all_reduce(*group, of_bias);  // of the tokens of one rank
        EXPECT_TRUE(close(of_bias, b2.grad()));
      });
    }
  }
}

TEST(SequenceParallel, DropoutDropsTheSameElementsOfEveryShare) {
  const DropoutPlace place{.seed = 7, .step = 3, .sequence = 5, .layer = 2, .site = 1};
  // Sequences with and without a rest after whole blocks of four numbers, and longer than a piece.
  for (const int64_t of_sequence : {12, 13, 5000, 9999}) {
    const at::Tensor x = at::randn({3 * of_sequence}, at::kDouble).add_(10);
    const at::Tensor whole = dropped_by_loop(x, {of_sequence, 0}, place, 0.4);
    for (const int64_t first : {int64_t{0}, int64_t{3}, of_sequence - 1, of_sequence, 2 * of_sequence + 2}) {
      for (const int64_t count : {int64_t{0}, int64_t{1}, int64_t{6}, of_sequence - 2}) {
        const at::Tensor part = x.narrow(0, first, count), expected = whole.narrow(0, first, count);
        EXPECT_TRUE(at::equal(dropped_by_loop(part, {of_sequence, first}, place, 0.4), expected));
        EXPECT_TRUE(close(dropped_by_operators(part, {of_sequence, first}, place, 0.4), expected));
      }
    }
  }
}

}  // namespace
}  // namespace sailor
