#include "trainer/model/weight_product.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "tests/unit/trainer/comm/ranks.h"

namespace sailor {
namespace {

at::Tensor leaf(const at::Tensor& values) {
  return values.clone().set_requires_grad(true);
}

// What the library's own operators leave in x, w and b, after `passes` backwards.
struct Expected {
  at::Tensor y, x, w, b;

  Expected(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias, bool by_outputs,
           int passes)
      : x(leaf(input)), w(leaf(weight)), b(leaf(bias)) {
    for (int pass = 0; pass < passes; ++pass) {
      y = at::matmul(x, by_outputs ? w.t() : w) + b;
      torch::autograd::backward({y}, {y.detach().sin()});
    }
  }
};

TEST(WeightProduct, LeavesWhatTheLibrarysOperatorsLeave) {
  const at::Tensor input = at::randn({2, 5, 6}, at::kDouble), bias = at::randn({4}, at::kDouble);
  for (const bool by_outputs : {true, false}) {
    const at::Tensor weight = at::randn({by_outputs ? 4 : 6, by_outputs ? 6 : 4}, at::kDouble);
    const Expected expected(input, weight, bias, by_outputs, 3);
    at::Tensor x = leaf(input), w = leaf(weight), b = leaf(bias);
    const void* accumulated = nullptr;
    for (int pass = 0; pass < 3; ++pass) {
      const at::Tensor y = by_outputs ? product_by_outputs(x, w, b, {}) : product_by_inputs(x, w, b, {});
      EXPECT_TRUE(at::allclose(y, expected.y, 1e-13, 1e-13));
      torch::autograd::backward({y}, {y.detach().sin()});
      if (pass > 0) {
        EXPECT_EQ(w.grad().data_ptr(), accumulated) << "not added in place";
      }
      accumulated = w.grad().data_ptr();
    }
    EXPECT_TRUE(at::allclose(x.grad(), expected.x.grad(), 1e-13, 1e-13));
    EXPECT_TRUE(at::allclose(w.grad(), expected.w.grad(), 1e-13, 1e-13));
    EXPECT_TRUE(at::allclose(b.grad(), expected.b.grad(), 1e-13, 1e-13));
  }
}

// The gradient of the weight waits for its call, and has the same bits then; the others do not wait.
TEST(WeightProduct, LeavesTheGradientOfTheWeightForLater) {
  const at::Tensor input = at::randn({2, 5, 6}, at::kDouble), bias = at::randn({4}, at::kDouble);
  for (const bool by_outputs : {true, false}) {
    const at::Tensor weight = at::randn({by_outputs ? 4 : 6, by_outputs ? 6 : 4}, at::kDouble);
    const auto product = by_outputs ? product_by_outputs : product_by_inputs;
    at::Tensor x = leaf(input), w = leaf(weight), b = leaf(bias), at_once_x = leaf(input);
    at::Tensor at_once_w = leaf(weight), at_once_b = leaf(bias);
    for (int pass = 0; pass < 2; ++pass) {
      const auto later = c10::make_intrusive<LaterGradients>();
      const at::Tensor y = product(x, w, b, {}, later),
                       same = product(at_once_x, at_once_w, at_once_b, {}, {});
      torch::autograd::backward({y}, {y.detach().sin()});
      torch::autograd::backward({same}, {same.detach().sin()});
      EXPECT_TRUE(at::equal(x.grad(), at_once_x.grad()));
      EXPECT_TRUE(at::equal(b.grad(), at_once_b.grad()));
      EXPECT_FALSE(w.grad().defined() && at::equal(w.grad(), at_once_w.grad()));
      later->compute();
      EXPECT_TRUE(at::equal(w.grad(), at_once_w.grad()));
      later->compute();  // has nothing more to do
      EXPECT_TRUE(at::equal(w.grad(), at_once_w.grad()));
    }
    // What is frozen has no gradient later either.
    const auto later = c10::make_intrusive<LaterGradients>();
    product(x, weight, b, {}, later).sum().backward();
    later->compute();
    EXPECT_FALSE(weight.grad().defined());
  }
}

// Of 16-bit weights, products and sums of rows are added to gradients in fp32, which are not rounded to 16
// bits. Of smaller matrices libtorch itself sums a product in 16 bits, on some processors.
TEST(WeightProduct, AddsToGradientsInFp32) {
  const at::Tensor input = at::randn({40, 32}).to(at::kBFloat16).to(at::kDouble);
  const at::Tensor bias = at::randn({16}, at::kDouble);
  for (const bool by_outputs : {true, false}) {
    const at::Tensor weight = at::randn({by_outputs ? 16 : 32, by_outputs ? 32 : 16}, at::kDouble);
    const at::Tensor x = input.to(at::kBFloat16);
    at::Tensor w = leaf(weight.to(at::kBFloat16)), b = leaf(bias.to(at::kBFloat16));
    const at::Tensor w_sum = at::full(weight.sizes(), 1000.0), b_sum = at::full({16}, 1000.0);
    w.mutable_grad() = w_sum;
    b.mutable_grad() = b_sum;
    for (int pass = 0; pass < 2; ++pass)
      (by_outputs ? product_by_outputs(x, w, b, {}) : product_by_inputs(x, w, b, {})).sum().backward();
    EXPECT_EQ(w.grad().data_ptr(), w_sum.data_ptr());
    EXPECT_EQ(b.grad().data_ptr(), b_sum.data_ptr());
    const at::Tensor ones = at::ones({40, 16}, at::kDouble);
    const at::Tensor expected = 2 * (by_outputs ? ones.t().matmul(input) : input.t().matmul(ones)) + 1000;
    // A sum near 1000 in bf16 would be off by up to 2.
    EXPECT_TRUE(at::allclose(w.grad().to(at::kDouble), expected, 0, 0.2));
    EXPECT_TRUE(at::allclose(b.grad(), at::full({16}, 1080.0)));
  }
}

TEST(WeightProduct, GoesWithoutABiasAndTakesGradientsThatAreNoMatrix) {
  const at::Tensor input = at::randn({3, 6}, at::kDouble), weight = at::randn({4, 6}, at::kDouble);
  at::Tensor x = leaf(input), w = leaf(weight);
  for (int pass = 0; pass < 2; ++pass) product_by_outputs(x, w, {}, {}).sum().backward();
  EXPECT_TRUE(at::allclose(w.grad(), 2 * input.sum(0).expand({4, 6}), 1e-13, 1e-13));
  EXPECT_TRUE(at::allclose(x.grad(), 2 * weight.sum(0).expand({3, 6}), 1e-13, 1e-13));
}

// Two ranks hold halves of the hidden layer of b + W2 (W1 x): the same result and gradients as one.
TEST(WeightProduct, HalvesOnTwoRanksMakeTheWhole) {
  const at::Tensor input = at::randn({2, 5, 6}, at::kDouble), gradient = at::randn({2, 5, 3}, at::kDouble);
  const at::Tensor up = at::randn({8, 6}, at::kDouble), down = at::randn({8, 3}, at::kDouble);
  const at::Tensor up_bias = at::randn({8}, at::kDouble), bias = at::randn({3}, at::kDouble);
  at::Tensor x = leaf(input), w1 = leaf(up), w2 = leaf(down), b1 = leaf(up_bias), b2 = leaf(bias);
  const at::Tensor y = at::matmul(at::matmul(x, w1.t()) + b1, w2) + b2;
  torch::autograd::backward({y}, {gradient});
  for (const char* plane : {"thread", "socket"}) {
    TestJob job(plane, 2);
    job.run([&](CommFactory& factory) {
      const auto tp = factory.create("tp", all_ranks(2));
      const auto half = [&](const at::Tensor& whole) { return whole.narrow(0, 4 * tp->rank(), 4); };
      const auto close = [](const at::Tensor& a, const at::Tensor& b) {
        return at::allclose(a, b, 1e-12, 1e-12);
      };
      at::Tensor my_x = leaf(input), my_w1 = leaf(half(up)), my_w2 = leaf(half(down));
      at::Tensor my_b1 = leaf(half(up_bias)), my_b2 = leaf(bias);
      const at::Tensor mine =
          product_by_inputs(product_by_outputs(my_x, my_w1, my_b1, {tp.get()}), my_w2, my_b2, {tp.get()});
      EXPECT_TRUE(close(mine, y));
      torch::autograd::backward({mine}, {gradient});
      EXPECT_TRUE(close(my_x.grad(), x.grad()));
      EXPECT_TRUE(close(my_w1.grad(), half(w1.grad())));
      EXPECT_TRUE(close(my_b1.grad(), half(b1.grad())));
      EXPECT_TRUE(close(my_w2.grad(), half(w2.grad())));
      EXPECT_TRUE(close(my_b2.grad(), b2.grad()));
    });
  }
}

TEST(RowsOfTable, AddsTheGradientsOfEveryTimeThatARowWasLookedUp) {
  const at::Tensor ids = at::tensor({3, 1, 3, 0, 3, 1}, at::kLong).view({2, 3});
  const at::Tensor values = at::randn({5, 4}, at::kDouble), gradient = at::randn({2, 3, 4}, at::kDouble);
  at::Tensor expected = leaf(values), table = leaf(values);
  for (int pass = 0; pass < 2; ++pass) {
    torch::autograd::backward({at::embedding(expected, ids)}, {gradient});
    const at::Tensor rows = rows_of_table(table, ids);
    EXPECT_TRUE(at::equal(rows, at::embedding(values, ids)));
    torch::autograd::backward({rows}, {gradient});
    EXPECT_TRUE(at::allclose(table.grad(), expected.grad(), 1e-14, 1e-14));
  }
}

}  // namespace
}  // namespace sailor
