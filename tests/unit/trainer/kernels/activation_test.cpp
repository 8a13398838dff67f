#include "trainer/kernels/activation.h"

#include "tests/unit/trainer/kernels/kernel_values.h"

namespace sailor::kernels {
namespace {

using test::Values;

double exact(ActivationKind kind, double x) {
  switch (kind) {
    case ActivationKind::gelu:
      return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
    case ActivationKind::gelu_tanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case ActivationKind::silu:
      return x / (1 + std::exp(-x));
    case ActivationKind::relu:
      break;
  }
  return std::max(x, 0.0);
}

double exact_slope(ActivationKind kind, double x) {
  if (kind == ActivationKind::relu) return x > 0 ? 1 : 0;
  const double h = 1e-5;  // the error of this formula is about h^4 and rounding / h
  return (8 * (exact(kind, x + h) - exact(kind, x - h)) - (exact(kind, x + 2 * h) - exact(kind, x - 2 * h))) /
         (12 * h);
}

constexpr ActivationKind kAllKinds[] = {ActivationKind::gelu, ActivationKind::gelu_tanh, ActivationKind::silu,
                                        ActivationKind::relu};

void check_activation(ActivationKind kind, bool gated, int64_t count, Element type, const Place& place,
                      const std::string& label) {
  const int64_t width = gated ? 2 : 1;
  // Also where functions saturate.
  Values x = Values::some(type, width * count, 1, count % 2 == 0 ? 3 : 30), g = Values::some(type, count, 2);
  Values y(type, count), for_x(type, width * count);
  ActivationPass pass{
      .type = type, .kind = kind, .gated = gated, .count = count, .x = x.data(), .result = y.data()};
  activation_forward(pass, place);
  std::vector<double> values, gradients;
  for (int64_t i = 0; i < count; ++i) {
    const double a = x[width * i], b = gated ? x[2 * i + 1] : 1;
    values.push_back(exact(kind, a) * b);
    gradients.push_back(g[i] * exact_slope(kind, a) * b);
    if (gated) gradients.push_back(g[i] * exact(kind, a));
  }
  test::expect_near(y, values, 8, label + ": y");
  pass.for_y = g.data();
  pass.result = for_x.data();
  activation_backward(pass, place);
  // The reference's slope has an error of about 1e-10.
  test::expect_near(for_x, gradients, type == Element::f64 ? 1e7 : 16, label + ": gradient");
}

TEST(ActivationKernel, IsAsItsFormulaForOddSizesOfAllTypes) {
  test::everywhere([](Element type, const Place& place, const std::string& label) {
    for (const ActivationKind kind : kAllKinds) {
      for (const int64_t count : {1, 31, 1030, 2051}) {
        for (const bool gated : {false, true}) {
          check_activation(kind, gated, count, type, place,
                           label + ", kind " + std::to_string(static_cast<int>(kind)) +
                               (gated ? ", gated" : "") + ", " + std::to_string(count));
        }
      }
    }
  });
}

TEST(ActivationKernel, InfinityAndNanAreWhatTheyAreInTheFormula) {
  for (const ActivationKind kind : kAllKinds) {
    const double infinity = std::numeric_limits<double>::infinity();
    for (const Element type : test::kElements) {
      Values x(type, 2, [&](int64_t i) { return i == 0 ? std::nan("") : infinity; }), y(type, 2);
      activation_forward({.type = type, .kind = kind, .count = 2, .x = x.data(), .result = y.data()},
                         Place());
      EXPECT_TRUE(std::isnan(y[0])) << static_cast<int>(kind) << test::name_of(type);
      EXPECT_EQ(y[1], infinity) << static_cast<int>(kind) << test::name_of(type);
    }
  }
}

}  // namespace
}  // namespace sailor::kernels
