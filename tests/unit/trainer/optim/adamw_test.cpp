#include "trainer/optim/adamw.h"

#include <gtest/gtest.h>

#include <cmath>

namespace sailor {
namespace {

Parameter make_parameter(at::ScalarType dtype, bool decay) {
  Parameter p{"p", 0, false, decay, at::arange(1, 8, at::TensorOptions().dtype(dtype)) / 4};
  p.value.set_requires_grad(true);
  return p;
}

TEST(AdamW, FollowsTheClosedFormElementByElement) {
  OptimizerSpec spec;
  spec.lr = 0.01;
  spec.weight_decay = 0.1;
  spec.epsilon = 1e-6;
  for (const bool decay : {false, true}) {
    Parameter p = make_parameter(at::kDouble, decay);
    AdamW optimizer(spec, {&p});
    std::vector<double> x(7), m(7), v(7);
    for (int i = 0; i < 7; ++i) x[static_cast<std::size_t>(i)] = (i + 1) / 4.0;
    for (int t = 1; t <= 5; ++t) {
      p.value.mutable_grad() = at::arange(-3, 4, at::kDouble) * t;
      optimizer.step();
      for (std::size_t i = 0; i < 7; ++i) {
        const double g = (static_cast<double>(i) - 3) * t;
        m[i] = 0.9 * m[i] + 0.1 * g;
        v[i] = 0.999 * v[i] + 0.001 * g * g;
        if (decay) x[i] -= spec.lr * spec.weight_decay * x[i];
        x[i] -= spec.lr * (m[i] / (1 - std::pow(0.9, t))) /
                (std::sqrt(v[i] / (1 - std::pow(0.999, t))) + spec.epsilon);
        ASSERT_NEAR(p.value.detach()[static_cast<int64_t>(i)].item<double>(), x[i], 1e-14)
            << "step " << t << " element " << i;
      }
    }
    EXPECT_EQ(optimizer.steps_done(), 5);
  }
}

TEST(AdamW, TheFirstStepHasTheSizeOfTheLearningRateInEitherPrecision) {
  OptimizerSpec spec;
  spec.lr = 0.5;
  for (const auto dtype : {at::kFloat, at::kDouble}) {
    Parameter p = make_parameter(dtype, true);
    const at::Tensor before = p.value.detach().clone();
    AdamW optimizer(spec, {&p});
    p.value.mutable_grad() = at::full_like(before, 123.0);
    optimizer.step();
    EXPECT_TRUE(at::allclose(before - p.value.detach(), at::full_like(before, 0.5), 1e-5, 1e-6));
  }
}

TEST(AdamW, AMissingGradientIsAnErrorThatNamesTheParameter) {
  Parameter p = make_parameter(at::kFloat, false);
  AdamW optimizer(OptimizerSpec{}, {&p});
  EXPECT_THROW(optimizer.step(), c10::Error);
}

}  // namespace
}  // namespace sailor
