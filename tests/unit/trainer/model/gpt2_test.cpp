#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <map>

#include "planner/spec/error.h"
#include "tests/unit/trainer/comm/ranks.h"
#include "trainer/model/initial_values.h"
#include "trainer/model/registry.h"
#include "trainer/model/tensor_parallel.h"

namespace sailor {
namespace {

ModelSpec small_model() {
  ModelSpec model;
  model.family = "gpt2";
  model.layers = 2;
  model.hidden = 24;
  model.heads = 12;
  model.feed_forward = 48;
  model.sequence = 5;
  model.vocabulary = 13;
  return model;
}

std::map<std::string, at::Tensor> parameters_of(const LayerContext& context) {
  std::map<std::string, at::Tensor> values;
  for (int i = 0; i < context.model.num_all_layers(); ++i) {
    const auto layer = build_layer(context, i);
    for (const Parameter& p : layer->parameters()) {
      EXPECT_TRUE(values.emplace(p.name, p.value.detach()).second) << "two parameters named " << p.name;
    }
  }
  return values;
}

TEST(InitialValues, DependOnSeedNameAndPositionAlone) {
  const at::Tensor all = normal_values(3, "1.fc1.weight", 0, 1000, 0.0, 1.0, at::kDouble);
  EXPECT_TRUE(
      at::equal(normal_values(3, "1.fc1.weight", 700, 100, 0.0, 1.0, at::kDouble), all.narrow(0, 700, 100)));
  EXPECT_FALSE(at::equal(normal_values(4, "1.fc1.weight", 0, 1000, 0.0, 1.0, at::kDouble), all));
  EXPECT_FALSE(at::equal(normal_values(3, "2.fc1.weight", 0, 1000, 0.0, 1.0, at::kDouble), all));
  const at::Tensor many = normal_values(9, "x", 0, 200'000, 0.5, 2.0, at::kDouble);
  EXPECT_NEAR(many.mean().item<double>(), 0.5, 0.02);
  EXPECT_NEAR(many.std().item<double>(), 2.0, 0.02);
}

TEST(Gpt2, EveryShardIsARowBlockOfTheWholeParameter) {
  LayerContext context;
  context.model = small_model();
  context.padded_vocabulary = padded_vocabulary(13, {4, 3});
  EXPECT_EQ(context.padded_vocabulary, 192);  // 16 * lcm(4, 3)
  const auto whole = parameters_of(context);
  for (const int tp : {2, 3, 4}) {
    TestJob job("thread", tp);
    job.run([&](CommFactory& factory) {
      const auto group = factory.create("tp", all_ranks(tp));
      LayerContext mine = context;
      mine.tp = group.get();
      for (const auto& entry : parameters_of(mine)) {
        const at::Tensor& full = whole.at(entry.first);
        const int64_t rows = entry.second.size(0);
        if (rows == full.size(0)) {
          EXPECT_TRUE(at::equal(entry.second, full)) << entry.first;
        } else {
          ASSERT_EQ(rows * tp, full.size(0)) << entry.first;
          EXPECT_TRUE(at::equal(entry.second, full.narrow(0, rows * group->rank(), rows))) << entry.first;
        }
      }
    });
  }
}

TEST(Gpt2, PaddingOfTheVocabularyChangesNothing) {
  double losses[2];
  for (const int64_t padded : {13, 24}) {
    LayerContext context;
    context.model = small_model();
    context.padded_vocabulary = padded;
    context.dtype = at::kDouble;
    const Batch batch{at::tensor({1, 12, 3, 4, 0}, at::kLong).view({1, 5}),
                      at::tensor({12, 3, 4, 0, 7}, at::kLong).view({1, 5})};
    at::Tensor x;
    std::vector<std::unique_ptr<Layer>> layers;
    for (int i = 0; i < 4; ++i) {
      layers.push_back(build_layer(context, i));
      x = layers.back()->forward(x, batch);
    }
    losses[padded == 24] = x.item<double>();
    torch::autograd::backward({x}, {});
    const at::Tensor head_gradient = layers.back()->parameters().back().value.grad();
    EXPECT_EQ(head_gradient.narrow(0, 13, padded - 13).abs().sum().item<double>(), 0.0);
    EXPECT_NEAR(x.item<double>() / 5, std::log(13.0), 0.2) << "an untrained model knows nothing";
  }
  EXPECT_DOUBLE_EQ(losses[0], losses[1]);
}

TEST(Gpt2, CrossEntropyAndItsGradientEqualTheLibrarysOnAnyGroup) {
  const at::Tensor logits = at::randn({6, 24}, at::kDouble) * 30;  // large: the shift by the maximum matters
  const at::Tensor targets = at::tensor({0, 22, 5, -1, 12, 1}, at::kLong);  // one does not count
  at::Tensor leaf = logits.clone().set_requires_grad(true);
  at::Tensor expected = -leaf.narrow(1, 0, 23).log_softmax(1).gather(1, targets.clamp_min(0).unsqueeze(1));
  expected = expected.masked_fill(targets.lt(0).unsqueeze(1), 0.0).sum();
  torch::autograd::backward({expected * 0.25}, {});
  for (const int tp : {1, 2, 3, 4}) {
    TestJob job("thread", tp);
    job.run([&](CommFactory& factory) {
      const auto group = factory.create("tp", all_ranks(tp));
      const int64_t columns = 24 / tp;
      at::Tensor mine = logits.narrow(1, columns * group->rank(), columns).clone().set_requires_grad(true);
      const at::Tensor loss = vocabulary_cross_entropy(mine * 1.0, targets, 23, group.get());
      EXPECT_NEAR(loss.item<double>(), expected.item<double>(), 1e-10);
      torch::autograd::backward({loss * 0.25}, {});
      EXPECT_TRUE(
          at::allclose(mine.grad(), leaf.grad().narrow(1, columns * group->rank(), columns), 1e-12, 1e-14));
    });
  }
}

TEST(Gpt2, TheZLossAndItsGradientEqualTheLibrarysOnAnyGroup) {
  const at::Tensor logits = at::randn({6, 24}, at::kDouble) * 30;
  const at::Tensor targets = at::tensor({0, 22, 5, -1, 12, 1}, at::kLong);
  const at::Tensor uncounted = targets.lt(0);
  const double coefficient = 0.03;
  at::Tensor leaf = logits.clone().set_requires_grad(true);
  const at::Tensor real = leaf.narrow(1, 0, 23);
  const at::Tensor target_logit = real.gather(1, targets.clamp_min(0).unsqueeze(1)).squeeze(1);
  const at::Tensor log_z = real.exp().sum(1).log();
  const at::Tensor entropy = (log_z - target_logit).masked_fill(uncounted, 0.0).sum();
  const at::Tensor z_loss = (log_z * log_z * coefficient).masked_fill(uncounted, 0.0).sum();
  torch::autograd::backward({(entropy + z_loss) * 0.25}, {});
  for (const int tp : {1, 2, 3, 4}) {
    TestJob job("thread", tp);
    job.run([&](CommFactory& factory) {
      const auto group = factory.create("tp", all_ranks(tp));
      const int64_t columns = 24 / tp, first = columns * group->rank();
      at::Tensor mine = logits.narrow(1, first, columns).clone().set_requires_grad(true);
      const at::Tensor losses = vocabulary_cross_entropy(mine * 1.0, targets, 23, group.get(), coefficient);
      ASSERT_EQ(losses.numel(), 2);
      EXPECT_NEAR(losses[0].item<double>(), entropy.item<double>(), 1e-10);
      EXPECT_NEAR(losses[1].item<double>(), z_loss.item<double>(), 1e-10);
      torch::autograd::backward({losses.sum() * 0.25}, {});
      EXPECT_TRUE(at::allclose(mine.grad(), leaf.grad().narrow(1, first, columns), 1e-12, 1e-14));
    });
  }
}

}  // namespace
}  // namespace sailor
