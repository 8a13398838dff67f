#include "trainer/kernels/adamw.h"

#include "tests/unit/trainer/kernels/kernel_values.h"

namespace sailor::kernels {
namespace {

using test::Values;

void check_adamw(Element type, Element rounded_type, bool rounds, int64_t count, const Place& place,
                 const std::string& label) {
  Values value = Values::some(type, count, 1), gradient = Values::some(type, count, 2),
         m = Values::some(type, count, 3), v(type, count, [](int64_t i) { return 0.01 * (1 + i % 7); }),
         rounded(rounded_type, count);
  const AdamWUpdate update{.type = type,
                           .count = count,
                           .value = value.data(),
                           .rounded = rounds ? rounded.data() : nullptr,
                           .rounded_type = rounded_type,
                           .gradient = gradient.data(),
                           .m = m.data(),
                           .v = v.data(),
                           .beta1 = 0.9,
                           .beta2 = 0.95,
                           .epsilon = 1e-8,
                           .keep = 0.99,
                           .step_size = 0.02,
                           .second_correction = 1.5,
                           .gradient_scale = 0.25};
  std::vector<double> values, ms, vs;
  for (int64_t i = 0; i < count; ++i) {
    const double g = 0.25 * gradient[i];
    ms.push_back(0.9 * m[i] + (1 - 0.9) * g);
    vs.push_back(0.95 * v[i] + (1 - 0.95) * g * g);
    values.push_back(0.99 * value[i] - 0.02 * ms.back() / (std::sqrt(vs.back() * 1.5) + 1e-8));
  }
  adamw(update, place);
  test::expect_near(value, values, 4, label + ": value");
  test::expect_near(m, ms, 4, label + ": m");
  test::expect_near(v, vs, 4, label + ": v");
  for (int64_t i = 0; rounds && i < count; ++i)
    ASSERT_NEAR(rounded[i], value[i], test::rounding(rounded_type) * std::abs(value[i]) + 1e-7) << label;
}

TEST(AdamWKernel, IsAsItsFormulaForOddSizes) {
  test::on_devices([](Element type, const Place& place, const std::string& label) {
    // Values are of 32 bits or more; narrower types are those of rounded values.
    const bool narrow = type == Element::bf16 || type == Element::f16;
    for (const int64_t count : {1, 31, 4096, 5003}) {
      check_adamw(narrow ? Element::f32 : type, narrow ? type : Element::bf16, narrow, count, place,
                  label + ", " + std::to_string(count));
    }
  });
}

TEST(AdamWKernel, NothingIsUpdated) {
  adamw({}, Place{true});
  EXPECT_THROW(adamw({.count = 1}, Place()), std::logic_error);
}

}  // namespace
}  // namespace sailor::kernels
