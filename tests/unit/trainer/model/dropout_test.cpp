#include "trainer/model/dropout.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>

namespace sailor {
namespace {

Dropout make_dropout(double rate) {
  LayerContext context;
  context.model.family = "gpt2";
  context.model.layers = 3;
  context.model.heads = context.model.hidden = 1;
  context.model.dropout = rate;
  context.seed = 42;
  std::vector<Parameter> none;
  return Dropout(ParameterMaker(context, 3, none));
}

Batch batch_of(int64_t step, int64_t first_sequence) {
  return {.step = step, .first_sequence = first_sequence};
}

// More than a piece of 4096 numbers a sequence, and no whole number of blocks.
at::Tensor activation(at::ScalarType type = at::kDouble) {
  return (at::arange(5 * 71 * 59, at::kDouble).view({5, 71, 59}) + 1).div(1000).to(type);
}

TEST(Dropout, LeavesOutItsShareAndScalesTheRest) {
  for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kBFloat16, at::kHalf}) {
    const at::Tensor x = activation(type), y = make_dropout(0.25)(x, batch_of(2, 0), DropoutSite::mlp);
    ASSERT_EQ(y.scalar_type(), type);
    const at::Tensor out = y.eq(0);
    const double share = out.to(at::kDouble).mean().item<double>();
    EXPECT_NEAR(share, 0.25, 5 * std::sqrt(0.25 * 0.75 / static_cast<double>(x.numel())));
    const at::Tensor wide = x.to(type == at::kDouble ? at::kDouble : at::kFloat);
    const at::Tensor scaled = (wide * (1 / 0.75)).to(type);
    EXPECT_TRUE(at::equal(y, scaled.masked_fill(out, 0)));
  }
}

TEST(Dropout, AMicrobatchIsAPartOfTheGlobalBatch) {
  const Dropout dropout = make_dropout(0.5);
  const at::Tensor x = activation();
  const at::Tensor whole = dropout(x, batch_of(6, 10), DropoutSite::attention);
  for (int64_t i = 0; i < 5; ++i) {
    const at::Tensor one = dropout(x.narrow(0, i, 1), batch_of(6, 10 + i), DropoutSite::attention);
    EXPECT_TRUE(at::equal(one, whole.narrow(0, i, 1)));
  }
  EXPECT_TRUE(at::equal(whole, dropout(x, batch_of(6, 10), DropoutSite::attention)));
  EXPECT_FALSE(at::equal(whole, dropout(x, batch_of(7, 10), DropoutSite::attention)));
  EXPECT_FALSE(at::equal(whole, dropout(x, batch_of(6, 10), DropoutSite::mlp)));
  // In another order in memory it is the same activation.
  const at::Tensor other = x.transpose(1, 2).contiguous().transpose(1, 2);
  EXPECT_TRUE(at::equal(whole, dropout(other, batch_of(6, 10), DropoutSite::attention)));
}

TEST(Dropout, TheGradientGoesWhereTheActivationWent) {
  const at::Tensor x = activation().set_requires_grad(true);
  const at::Tensor y = make_dropout(0.5)(x, batch_of(1, 4), DropoutSite::mlp);
  torch::autograd::backward({y}, {at::ones_like(y) * 3});
  EXPECT_TRUE(at::equal(x.grad(), at::full_like(x, 6.0).masked_fill(y.eq(0), 0)));
}

TEST(Dropout, DoesNothingAtNoCostWhereNothingIsToBeLeftOut) {
  const at::Tensor x = activation();
  EXPECT_TRUE(make_dropout(0)(x, batch_of(1, 0), DropoutSite::mlp).is_same(x));
  EXPECT_TRUE(make_dropout(0.5)(x, Batch{}, DropoutSite::mlp).is_same(x)) << "no step: validation";
}

}  // namespace
}  // namespace sailor
