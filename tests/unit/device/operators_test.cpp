// What a device computes with libtorch's operators against the loops that processors run, on processors.
#include <gtest/gtest.h>

#include <cmath>

#include "trainer/model/dropout.h"
#include "trainer/optim/muon.h"
#include "trainer/optim/operator_kernels.h"
#include "trainer/optim/optimizer.h"
#include "trainer/optim/square_sum.h"

namespace sailor {
namespace {

// Element i of it, independent of libtorch's generators.
at::Tensor numbers(int64_t count, double seed, at::ScalarType type = at::kFloat) {
  return (at::arange(count, at::kDouble) * 0.7 + seed).sin().to(type);
}

double largest_difference(const at::Tensor& a, const at::Tensor& b) {
  return (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
}

struct Slices {
  at::Tensor weight, bias;                    // with decay, and without
  at::Tensor weight_gradient, bias_gradient;  // new ones every step
  std::unique_ptr<Optimizer> optimizer;

  Slices(const OptimizerSpec& spec, at::ScalarType type)
      : weight(numbers(1003, 1, type)),
        bias(numbers(17, 2, type)),
        weight_gradient(at::empty({1003}, type == at::kDouble ? at::kDouble : at::kFloat)),
        bias_gradient(at::empty({17}, weight_gradient.options())) {
    optimizer = make_optimizer(spec, {{"weight", true, 0, 1003, weight, weight_gradient, /*linear=*/true},
                                      {"bias", false, 0, 17, bias, bias_gradient}});
  }
  void draw_gradients(int step) {
    weight_gradient.copy_(numbers(1003, 10 + step) * 0.1);
    bias_gradient.copy_(numbers(17, 20 + step) * 0.1);
  }
};

// The optimizer's loops, and the operators with what the optimizer would tell them.
void compare(const OptimizerSpec& spec, at::ScalarType type, double tolerance) {
  Slices loops(spec, type), operators(spec, type);
  for (int step = 0; step < 5; ++step) {
    for (Slices* slices : {&loops, &operators}) slices->draw_gradients(step);
    const double scale = step % 2 == 0 ? 1 : 0.3;
    if (auto* const muon = dynamic_cast<Muon*>(loops.optimizer.get())) {
      muon->start(scale);
      dynamic_cast<Muon&>(*operators.optimizer).start_by_operators(scale);
    }
    loops.optimizer->step(0.01, scale);
    operators.optimizer->step_by_operators(0.01, scale);
  }
  EXPECT_LE(largest_difference(loops.weight, operators.weight), tolerance) << spec.name;
  EXPECT_LE(largest_difference(loops.bias, operators.bias), tolerance) << spec.name;
  for (std::size_t i = 0; i < 2; ++i) {
    for (std::size_t s = 0; s < loops.optimizer->state(i).size(); ++s)
      EXPECT_LE(
          largest_difference(loops.optimizer->state(i)[s].tensor, operators.optimizer->state(i)[s].tensor),
          std::min(tolerance, 1e-5))
          << loops.optimizer->state(i)[s].name;
  }
}

TEST(Operators, UpdateAsTheLoopsDo) {
  OptimizerSpec adamw;
  adamw.name = "adamw";
  adamw.weight_decay = 0.1;
  OptimizerSpec sgd;
  sgd.name = "sgd";
  sgd.weight_decay = 0.1;
  OptimizerSpec momentum = sgd;
  momentum.momentum = 0.9;
  OptimizerSpec nesterov = momentum;
  nesterov.nesterov = true;
  OptimizerSpec muon = nesterov;
  muon.name = "muon";
  OptimizerSpec plain_muon = momentum;
  plain_muon.name = "muon";
  for (const OptimizerSpec& spec : {adamw, sgd, momentum, nesterov, muon, plain_muon}) {
    compare(spec, at::kFloat, 2e-6);
    compare(spec, at::kDouble, 1e-14);
    compare(spec, at::kBFloat16, 1.0 / 256);  // a master may round to either neighbour
    compare(spec, at::kHalf, 1.0 / 2048);
  }
}

TEST(Operators, LeaveOutWhatTheLoopLeavesOut) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16}) {
    const at::Tensor x = (numbers(3 * 5 * 7, 3, type) + 2).view({3, 5, 7});
    for (const uint64_t seed : {uint64_t{1}, uint64_t{0xfedcba9876543210}}) {
      const DropoutPlace place{.seed = seed, .step = 12, .sequence = int64_t{1} << 33, .layer = 9, .site = 1};
      for (const double rate : {0.1, 0.75}) {
        const at::Tensor loop = dropped_by_loop(x, {x.numel() / x.size(0)}, place, rate),
                         operators = dropped_by_operators(x, {x.numel() / x.size(0)}, place, rate);
        EXPECT_TRUE(at::equal(loop.eq(0), operators.eq(0))) << rate;
        EXPECT_LE(largest_difference(loop, operators), type == at::kBFloat16 ? 1.0 / 16 : 1e-6);
      }
    }
  }
}

TEST(Operators, SumSquaresAsTheLoopDoes) {
  const std::vector<at::Tensor> tensors = {numbers(100000, 1), numbers(3, 2), numbers(1, 3)};
  const double sum = square_sum(tensors);
  EXPECT_NEAR(square_sum_by_operators(tensors), sum, 1e-5 * sum);
  EXPECT_EQ(square_sum_by_operators({}), 0);
}

}  // namespace
}  // namespace sailor
