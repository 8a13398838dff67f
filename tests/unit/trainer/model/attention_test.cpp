#include "trainer/model/attention.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <array>
#include <cmath>

#include "planner/spec/error.h"
#include "trainer/model/norms.h"
#include "trainer/model/registry.h"
#include "trainer/model/rotary.h"

namespace sailor {
namespace {

RotarySpeeds speeds(int rotated, double base) {
  ModelSpec model;
  model.hidden = rotated;
  model.heads = 1;
  model.rotary_base = base;
  return rotary_speeds(model, /*local=*/false);
}

TEST(Rotary, TurnsThePairsOfAHeadByPositionTimesSpeed) {
  const RotaryTable table(3, speeds(4, 100.0), at::kDouble);  // speeds 1 and 1/10
  const at::Tensor x = at::tensor({1.0, 2.0, 3.0, 4.0}).to(at::kDouble).expand({1, 1, 3, 4});
  const at::Tensor y = table.rotate(x)[0][0];
  for (int position = 0; position < 3; ++position) {
    const double a = position, b = position / 10.0;
    // Pairs are (1, 3) and (2, 4).
    EXPECT_NEAR(y[position][0].item<double>(), std::cos(a) - 3 * std::sin(a), 1e-14);
    EXPECT_NEAR(y[position][2].item<double>(), 3 * std::cos(a) + std::sin(a), 1e-14);
    EXPECT_NEAR(y[position][1].item<double>(), 2 * std::cos(b) - 4 * std::sin(b), 1e-14);
    EXPECT_NEAR(y[position][3].item<double>(), 4 * std::cos(b) + 2 * std::sin(b), 1e-14);
  }
}

// Neighbours are pairs; otherwise as with halves.
TEST(Rotary, InterleavedPairsTurnLikeTheOthers) {
  RotaryTable halves(5, speeds(6, 100.0), at::kDouble), neighbours = halves;
  neighbours.interleaved = true;
  const at::Tensor x = at::randn({2, 3, 5, 8}, at::kDouble);
  const at::Tensor order = at::tensor({0, 2, 4, 1, 3, 5, 6, 7}, at::kLong);
  const at::Tensor turned = neighbours.rotate(x);
  EXPECT_TRUE(at::allclose(turned.index_select(3, order), halves.rotate(x.index_select(3, order)), 0, 1e-14));
  EXPECT_FALSE(at::allclose(turned, halves.rotate(x)));
}

TEST(Rotary, ScoresDependOnTheDistanceAlone) {
  const RotaryTable table(12, speeds(8, 10000.0), at::kDouble);
  const at::Tensor q = at::randn({8}, at::kDouble).expand({1, 1, 12, 8}),
                   k = at::randn({8}, at::kDouble).expand({1, 1, 12, 8});
  const at::Tensor scores = at::matmul(table.rotate(q), table.rotate(k).transpose(2, 3))[0][0];
  for (int distance = 0; distance < 8; ++distance)
    EXPECT_NEAR(scores[distance + 1][1].item<double>(), scores[distance + 4][4].item<double>(), 1e-12);
}

TEST(Attention, GroupedQueriesShareTheirKeyAndValue) {
  // Two key and value heads of size 1, two queries each: rows [kv head][query, query, key, value].
  const at::Tensor qkv = at::arange(8, at::kDouble).view({1, 1, 8});
  const Heads heads = split_heads(qkv, 4, 2);
  EXPECT_TRUE(at::equal(heads.query.reshape({-1}), at::tensor({0, 1, 4, 5}).to(at::kDouble)));
  EXPECT_TRUE(at::equal(heads.key.reshape({-1}), at::tensor({2, 6}).to(at::kDouble)));
  EXPECT_TRUE(at::equal(heads.value.reshape({-1}), at::tensor({3, 7}).to(at::kDouble)));
  EXPECT_TRUE(
      at::equal(merge_heads(attend(heads, 1.0)).reshape({-1}), at::tensor({3, 3, 7, 7}).to(at::kDouble)))
      << "one token attends to itself";
}

// Equal scores over 2,000 tokens: every weight is 1/2000, and a sum that is rounded to 8 bits at every token
// stops growing at about an eighth.
TEST(Attention, ManyTokensOf16BitsAreSummedInFp32) {
  const int64_t tokens = 2000;
  for (const at::ScalarType type : {at::kBFloat16, at::kHalf}) {
    const at::Tensor none = at::zeros({1, 1, tokens, 4}, type), ones = at::ones_like(none);
    const at::Tensor last = attend({none, none, ones}, 1.0)[0][0][tokens - 1];
    EXPECT_EQ(last.scalar_type(), type);
    const double limit = type == at::kHalf ? 1.0 / 1024 : 1.0 / 128;
    EXPECT_LT((last.to(at::kDouble) - 1).abs().max().item<double>(), limit) << last;
  }
}

TEST(Attention, AWindowOfOneSeesOnlyItselfAndOneOfAllIsNone) {
  const at::Tensor q = at::randn({1, 2, 6, 4}, at::kDouble), k = at::randn({1, 2, 6, 4}, at::kDouble),
                   v = at::randn({1, 2, 6, 4}, at::kDouble);
  EXPECT_TRUE(at::allclose(attend({q, k, v}, 0.7, 1), v));
  EXPECT_TRUE(at::allclose(attend({q, k, v}, 0.7, 6), attend({q, k, v}, 0.7)));
  EXPECT_FALSE(at::allclose(attend({q, k, v}, 0.7, 5), attend({q, k, v}, 0.7)));
  // The third token of a window of two: softmax over tokens 1 and 2, by hand.
  const at::Tensor scores = 0.7 * at::matmul(k[0][0].narrow(0, 1, 2), q[0][0][2]);
  const at::Tensor expected = at::matmul(scores.softmax(0), v[0][0].narrow(0, 1, 2));
  EXPECT_TRUE(at::allclose(attend({q, k, v}, 0.7, 2)[0][0][2], expected));
}

TEST(Attention, SoftCapsAreThoseOfTheComposedOperators) {
  const auto made = [] { return at::randn({2, 2, 5, 4}, at::kDouble).set_requires_grad(true); };
  const at::Tensor q = made(), k = made(), v = made(), seed = at::randn({2, 2, 5, 4}, at::kDouble);
  for (const int64_t window : {0, 3}) {
    const at::Tensor scores = 2 * (0.7 * at::matmul(q, k.transpose(2, 3)) / 2).tanh();
    at::Tensor seen = at::ones({5, 5}, at::kBool).tril();
    if (window > 0) seen = seen.triu(1 - window);
    const at::Tensor theirs = at::matmul(scores.masked_fill(seen.logical_not(), -INFINITY).softmax(-1), v);
    const at::Tensor ours = attend({q, k, v}, 0.7, window, 2);
    EXPECT_TRUE(at::allclose(ours, theirs, 1e-13, 1e-13)) << window;
    const auto gradients = torch::autograd::grad({ours}, {q, k, v}, {seed});
    const auto expected = torch::autograd::grad({theirs}, {q, k, v}, {seed});
    for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(at::allclose(gradients[i], expected[i], 1e-12, 1e-12)) << i;
  }
}

// Two sequences of documents of 3, 1 and 3 and of 7 tokens, with grouped queries and rotary positions.
TEST(Attention, InDocumentsEveryOneIsAsIfItWereAlone) {
  const std::vector<int64_t> documents = {3, 1, 3, 7};
  const RotaryTable table(7, speeds(4, 100.0), at::kDouble);
  const at::Tensor qkv = at::randn({2, 7, 8 * 4}, at::kDouble).set_requires_grad(true);
  const auto turned = [&](const at::Tensor& projected) {
    const Heads heads = split_heads(projected, 4, 2);
    return Heads{table.rotate(heads.query), table.rotate(heads.key), heads.value};
  };
  for (const auto& [window, cap] :
       std::vector<std::pair<int64_t, double>>{{0, 0}, {2, 0}, {0, 1.5}, {2, 1.5}}) {
    const at::Tensor ours = attend_in_documents(turned(qkv), documents, 0.7, window, cap);
    std::vector<at::Tensor> alone;
    for (const auto& [sequence, first, length] :
         std::vector<std::array<int64_t, 3>>{{0, 0, 3}, {0, 3, 1}, {0, 4, 3}, {1, 0, 7}}) {
      const at::Tensor document = qkv.narrow(0, sequence, 1).narrow(1, first, length);
      alone.push_back(merge_heads(attend(turned(document), 0.7, window, cap)));
    }
    const at::Tensor theirs = at::cat(alone, 1).view({2, 7, 16}), seed = at::randn({2, 7, 16}, at::kDouble);
    EXPECT_TRUE(at::allclose(ours, theirs, 1e-13, 1e-13)) << window << " " << cap;
    const at::Tensor gradient = torch::autograd::grad({ours}, {qkv}, {seed})[0],
                     expected = torch::autograd::grad({theirs}, {qkv}, {seed})[0];
    EXPECT_TRUE(at::allclose(gradient, expected, 1e-12, 1e-12)) << window << " " << cap;
  }
}

TEST(RotaryTable, TurnsTheFirstElementsOnly) {
  const at::Tensor x = at::randn({2, 3, 5, 8}, at::kDouble);
  const RotaryTable part(5, speeds(4, 100.0), at::kDouble);
  const at::Tensor turned = part.rotate(x);
  EXPECT_TRUE(at::equal(turned.narrow(3, 4, 4), x.narrow(3, 4, 4)));
  EXPECT_TRUE(at::equal(turned.narrow(3, 0, 4), part.rotate(x.narrow(3, 0, 4))));
  EXPECT_FALSE(at::allclose(turned.narrow(3, 0, 4), x.narrow(3, 0, 4)));
}

TEST(RmsNorm, ItsGradientsAreThoseOfTheComposedOperators) {
  LayerContext context;
  set_family(context.model, "llama");
  context.model.layers = context.model.heads = 1;
  context.model.hidden = 6;
  context.model.norm_epsilon = 1e-3;
  context.dtype = at::kDouble;
  std::vector<Parameter> parameters;
  ParameterMaker make(context, 1, parameters);
  const NormLayer norm(make, "norm1");
  norm.weight.detach().copy_(at::randn({6}, at::kDouble));
  const at::Tensor x = at::randn({2, 3, 6}, at::kDouble).set_requires_grad(true);
  const at::Tensor seed = at::randn({2, 3, 6}, at::kDouble);
  const at::Tensor ours = norm(x);
  const auto gradients = torch::autograd::grad({ours}, {x, norm.weight}, {seed}, true);
  const at::Tensor theirs = x / (x.pow(2).mean(-1, true) + 1e-3).sqrt() * norm.weight;
  const auto expected = torch::autograd::grad({theirs}, {x, norm.weight}, {seed});
  EXPECT_TRUE(at::allclose(ours, theirs, 1e-13, 1e-13));
  EXPECT_TRUE(at::allclose(gradients[0], expected[0], 1e-12, 1e-12));
  EXPECT_TRUE(at::allclose(gradients[1], expected[1], 1e-12, 1e-12));
}

TEST(ModelFamilies, KeyAndValueHeadsMustDivideByTheDegree) {
  ModelSpec model;
  set_family(model, "llama");
  model.layers = 2;
  model.hidden = 32;
  model.heads = 8;
  model.kv_heads = 2;
  model.feed_forward = 64;
  EXPECT_NO_THROW(check_split(model, 2));
  try {
    check_split(model, 4);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(std::string(error.what()),
              "model.kv_heads: 2 cannot be split over 4 GPUs of a TP group; choose a plan whose TP degrees "
              "divide it");
  }
  EXPECT_TRUE(model.splits_over({2}));
  EXPECT_FALSE(model.splits_over({4})) << "the planner must not offer what the trainer refuses";
}

}  // namespace
}  // namespace sailor
