#include "trainer/kernels/norm.h"

#include "tests/unit/trainer/kernels/kernel_values.h"

namespace sailor::kernels {
namespace {

using test::Values;

struct NormCase {
  int64_t rows, columns;
  bool centred, adds, has_bias, wide_weight;
  double offset;
  bool wide_gradient = false;
};

const std::vector<NormCase>& norm_cases() {
  static const std::vector<NormCase> cases = {
      {1, 2, false, false, false, false, 0},   {3, 7, true, false, true, false, 0},
      {5, 33, false, true, false, true, 1},    {2, 257, true, true, true, false, 0, true},
      {19, 65, false, false, false, false, 1}, {37, 130, true, true, false, true, 0},
      {2, 4097, true, true, true, false, 0},   {17, 1600, true, true, true, false, 0, true},
      {33, 328, false, false, false, true, 1}, {1, 8192, true, true, true, false, 0},
  };
  return cases;
}

struct NormReference {
  std::vector<double> sum, y, for_x, for_weight, for_bias;
};

NormReference reference(const NormCase& c, const Values& sum, const Values& weight, const Values& bias,
                        const Values& for_y, const Values& for_sum, double epsilon) {
  NormReference result;
  const auto n = static_cast<std::size_t>(c.columns);
  result.for_weight.resize(n);
  result.for_bias.resize(n);
  for (int64_t row = 0; row < c.rows; ++row) {
    const int64_t first = row * c.columns;
    long double mean = 0, squares = 0, mean_u = 0, mean_uz = 0;
    const long double count = static_cast<double>(c.columns);
    for (int64_t i = 0; c.centred && i < c.columns; ++i) mean += sum[first + i] / count;
    for (int64_t i = 0; i < c.columns; ++i) squares += std::pow(sum[first + i] - mean, 2) / count;
    const double scale = 1 / std::sqrt(squares + epsilon);
    std::vector<double> z(n), u(n);
    for (int64_t i = 0; i < c.columns; ++i) {
      const auto k = static_cast<std::size_t>(i);
      z[k] = (sum[first + i] - mean) * scale;
      u[k] = for_y[first + i] * (c.offset + weight[i]);
      if (c.centred) mean_u += u[k] / count;
      mean_uz += u[k] * z[k] / count;
      result.sum.push_back(sum[first + i]);
      result.y.push_back(z[k] * (c.offset + weight[i]) + (c.has_bias ? bias[i] : 0));
      result.for_weight[k] += for_y[first + i] * z[k];
      result.for_bias[k] += for_y[first + i];
    }
    for (std::size_t k = 0; k < n; ++k)
      result.for_x.push_back(scale * (u[k] - mean_u - z[k] * mean_uz) +
                             (c.adds ? for_sum[first + static_cast<int64_t>(k)] : 0));
  }
  return result;
}

void check_norm(const NormCase& c, Element type, const Place& place, const std::string& label) {
  const std::string what = label + ", " + std::to_string(c.rows) + " x " + std::to_string(c.columns);
  const int64_t count = c.rows * c.columns;
  const auto widened = [&](bool wide) { return wide && type != Element::f64 ? Element::f32 : type; };
  const Element weight_type = widened(c.wide_weight),
                gradient_type = widened(c.wide_weight || c.wide_gradient);
  Values x = Values::some(type, count, 1), addition = Values::some(type, count, 2),
         weight = Values::some(weight_type, c.columns, 3), bias = Values::some(weight_type, c.columns, 4),
         for_y = Values::some(type, count, 5), for_sum = Values::some(type, count, 6);
  const Values rounded_sum(type, count, [&](int64_t i) { return x[i] + (c.adds ? addition[i] : 0); });
  Values sum = rounded_sum, y(type, count), mean(test::computed(type), c.rows), scale = mean;
  const double epsilon = 1e-5;
  NormForward forward{.type = type,
                      .weight_type = weight_type,
                      .centred = c.centred,
                      .rows = c.rows,
                      .columns = c.columns,
                      .epsilon = epsilon,
                      .weight_offset = c.offset,
                      .x = x.data(),
                      .addition = c.adds ? addition.data() : nullptr,
                      .weight = weight.data(),
                      .bias = c.has_bias ? bias.data() : nullptr,
                      .sum = c.adds ? sum.data() : nullptr,
                      .y = y.data(),
                      .mean = c.centred ? mean.data() : nullptr,
                      .scale = scale.data()};
  if (c.adds) sum = Values(type, count);
  forward.sum = c.adds ? sum.data() : nullptr;
  norm_forward(forward, place);
  const NormReference wanted = reference(c, rounded_sum, weight, bias, for_y, for_sum, epsilon);
  if (c.adds) test::expect_near(sum, wanted.sum, 0, what + ": sum");
  test::expect_near(y, wanted.y, 16, what + ": y");

  Values for_x(type, count), for_weight(gradient_type, c.columns), for_bias(gradient_type, c.columns);
  NormBackward backward{.type = type,
                        .weight_type = weight_type,
                        .gradient_type = gradient_type,
                        .centred = c.centred,
                        .rows = c.rows,
                        .columns = c.columns,
                        .weight_offset = c.offset,
                        .sum = c.adds ? sum.data() : x.data(),
                        .weight = weight.data(),
                        .mean = mean.data(),
                        .scale = scale.data(),
                        .for_y = for_y.data(),
                        .for_sum = c.adds ? for_sum.data() : nullptr,
                        .for_x = for_x.data()};
  Values partial_sums(test::computed(type), backward.parts() * 2 * c.columns);
  norm_backward(backward, place);
  test::expect_near(for_x, wanted.for_x, 64, what + ": gradient of x, weights frozen");
  backward.for_weight = for_weight.data();
  backward.for_bias = c.has_bias ? for_bias.data() : nullptr;
  backward.partial_sums = partial_sums.data();
  norm_backward(backward, place);
  test::expect_near(for_x, wanted.for_x, 64, what + ": gradient of x");
  test::expect_near(for_weight, wanted.for_weight, 64, what + ": gradient of the weight");
  const Values for_weight_once = for_weight;
  if (c.has_bias) test::expect_near(for_bias, wanted.for_bias, 64, what + ": gradient of the bias");

  backward.adds = true;
  norm_backward(backward, place);
  std::vector<double> twice;
  for (int64_t i = 0; i < c.columns; ++i) twice.push_back(2 * for_weight_once[i]);
  test::expect_near(for_weight, twice, 64, what + ": added gradient of the weight");
}

TEST(NormKernel, IsAsItsFormulaForOddSizesOfAllTypes) {
  test::everywhere([](Element type, const Place& place, const std::string& label) {
    for (const NormCase& c : norm_cases()) check_norm(c, type, place, label);
  });
}

TEST(NormKernel, NothingIsNoRow) {
  NormForward forward;
  forward.columns = 3;
  norm_forward(forward, Place());
  NormBackward backward;
  backward.columns = 3;
  EXPECT_EQ(backward.parts(), 1);
}

}  // namespace
}  // namespace sailor::kernels
