// Attention over tokens that several ranks split, against attention over all of them.
#include "trainer/model/ring_attention.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "tests/unit/trainer/comm/ranks.h"
#include "trainer/model/attention.h"
#include "trainer/model/context_parallel.h"

namespace sailor {
namespace {

struct RingCase {
  std::string what;
  int ring = 2;
  int64_t length = 16;
  std::vector<int64_t> documents{};
  int64_t window = 0;
  double soft_cap = 0;
  int64_t kv_heads = 2;
  std::string plane = "thread";

  friend void PrintTo(const RingCase& ring, std::ostream* out) { *out << ring.what; }
};

constexpr int64_t kRingSequences = 2, kRingHeads = 4, kRingSize = 8;

class RingAttentionTest : public testing::TestWithParam<RingCase> {};

// Result and gradients of all tokens, on one rank.
std::vector<at::Tensor> whole_attention(const RingCase& of, const std::vector<at::Tensor>& inputs,
                                        const at::Tensor& weights) {
  std::vector<at::Tensor> leaves;
  for (const at::Tensor& input : inputs) leaves.push_back(input.clone().set_requires_grad(true));
  const Heads heads{leaves[0], leaves[1], leaves[2]};
  const at::Tensor mixed = of.documents.empty()
                               ? merge_heads(attend(heads, 0.3, of.window, of.soft_cap))
                               : attend_in_documents(heads, of.documents, 0.3, of.window, of.soft_cap);
  const at::Tensor by_head =
      mixed.detach().view({kRingSequences, of.length, kRingHeads, kRingSize}).transpose(1, 2);
  torch::autograd::backward(
      {(mixed * weights.transpose(1, 2).reshape({kRingSequences, of.length, kRingHeads * kRingSize})).sum()});
  return {by_head, leaves[0].grad(), leaves[1].grad(), leaves[2].grad()};
}

TEST_P(RingAttentionTest, HasTheResultAndTheGradientsOfAllTokens) {
  const RingCase& of = GetParam();
  at::manual_seed(7);
  const auto random = [&](int64_t heads) {
    return at::randn({kRingSequences, heads, of.length, kRingSize}, at::kDouble);
  };
  const std::vector<at::Tensor> inputs = {random(kRingHeads), random(of.kv_heads), random(of.kv_heads)};
  const at::Tensor weights = random(kRingHeads);
  const std::vector<at::Tensor> expected = whole_attention(of, inputs, weights);
  TestJob job(of.plane, of.ring);
  job.run([&](CommFactory& factory) {
    const auto group = factory.create("cp", all_ranks(of.ring));
    const TensorParallel tp{nullptr, {kRingSequences, of.length}, group.get(), of.ring};
    const RingTokens tokens(of.length, of.ring, group->rank());
    const auto own = [&](const at::Tensor& x) {
      return at::cat({x.narrow(2, tokens.front.first, tokens.front.count),
                      x.narrow(2, tokens.back.first, tokens.back.count)},
                     2);
    };
    std::vector<at::Tensor> leaves;
    for (const at::Tensor& input : inputs) leaves.push_back(own(input).set_requires_grad(true));
    const at::Tensor mixed = ring_attend({leaves[0], leaves[1], leaves[2]}, tp, of.documents,
                                         {.scale = 0.3, .soft_cap = of.soft_cap}, of.window);
    torch::autograd::backward({(mixed * own(weights)).sum()});
    const std::vector<at::Tensor> results = {mixed, leaves[0].grad(), leaves[1].grad(), leaves[2].grad()};
    for (std::size_t i = 0; i < results.size(); ++i)
      EXPECT_TRUE(at::allclose(results[i], own(expected[i]), 1e-10, 1e-12))
          << "result " << i << " of rank " << group->rank() << ": "
          << (results[i] - own(expected[i])).abs().max().item<double>();
  });
}

INSTANTIATE_TEST_SUITE_P(
    Rings, RingAttentionTest,
    testing::Values(RingCase{"two"}, RingCase{.what = "three", .ring = 3, .length = 17},
                    RingCase{.what = "four_over_sockets", .ring = 4, .length = 40, .plane = "socket"},
                    RingCase{.what = "all_heads", .ring = 2, .length = 9, .kv_heads = 4},
                    RingCase{.what = "fewer_tokens_than_runs", .ring = 4, .length = 5},
                    RingCase{.what = "documents", .ring = 3, .length = 17, .documents = {1, 9, 7, 12, 5}},
                    RingCase{.what = "whole_documents", .ring = 3, .length = 17, .documents = {17, 17}},
                    RingCase{.what = "window", .ring = 3, .length = 25, .window = 6},
                    RingCase{.what = "short_window", .ring = 4, .length = 32, .window = 2},
                    RingCase{.what = "window_as_long", .ring = 2, .length = 12, .window = 12},
                    RingCase{.what = "documents_and_window",
                             .ring = 2,
                             .length = 20,
                             .documents = {13, 7, 2, 18},
                             .window = 5},
                    RingCase{.what = "soft_cap", .ring = 3, .length = 18, .window = 7, .soft_cap = 2}),
    [](const auto& info) { return info.param.what; });

TEST(PartialAttention, RowsThatDoNotFitAreComputedInTurn) {
  // 2^24 scores are in memory at once: here two times three rows of 2^22 keys would be more.
  at::manual_seed(3);
  const int64_t keys = int64_t{1} << 22;
  const Heads heads{at::randn({1, 2, 3, 1}), at::randn({1, 1, keys, 1}), at::randn({1, 1, keys, 1})};
  const AttentionRule rule{.scale = 1, .soft_cap = 50};  // for which there are no fused kernels
  const AttentionPart all = attend_to_part(heads, rule, {});
  for (int64_t row = 0; row < 3; ++row) {
    const AttentionPart one =
        attend_to_part({heads.query.narrow(2, row, 1), heads.key, heads.value}, rule, {});
    EXPECT_TRUE(at::allclose(all.out.narrow(2, row, 1), one.out, 1e-4, 1e-6));
    EXPECT_TRUE(at::allclose(all.log_sum.narrow(2, row, 1), one.log_sum));
  }
}

}  // namespace
}  // namespace sailor
