#include "tests/equality/rounding.h"

#include <algorithm>
#include <cmath>

namespace sailor::equality {
namespace {

constexpr double kFp64PerFp32 = 1.0 / (1 << 29);  // of their roundings
// Of all roundings to those of weights, which are 18 of the 66 in a block (main.cpp): as random walks.
constexpr double kAllPerWeights = 1.9;

// A disturbance that is as large as rounding to these 16 bits. Rounding is off by half a unit of the last
// digit at most, and in the mean square by 0.72 of a uniform part of up to that.
double rounding_to(Precision precision) {
  return 0.72 * std::exp2(precision == Precision::bf16 ? -8 : -11);
}

Outcome difference(const std::vector<ReferenceStep>& rounded, const std::vector<ReferenceStep>& exact) {
  Outcome outcome;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const ReferenceStep &ours = rounded[i], &expected = exact[i];
    outcome.loss_err =
        std::max(outcome.loss_err, std::abs(ours.loss - expected.loss) / std::abs(expected.loss));
    for (const auto& [name, gradient] : expected.gradients)
      outcome.grad_err = std::max(
          outcome.grad_err,
          (ours.gradients.at(name).to(at::kDouble) - gradient.to(at::kDouble)).abs().max().item<double>() /
              gradient_scale(gradient, expected));
  }
  return outcome;
}

}  // namespace

Outcome rounding_of(const Case& c, const std::vector<ReferenceStep>& reference) {
  const Precision precision = c.job.training.precision;
  std::vector<bool> skipped;
  for (const ReferenceStep& step : reference) skipped.push_back(step.skipped);
  std::map<std::string, at::Tensor> initial = initial_values_of(c.job);
  const auto again = [&](at::ScalarType type, double disturbed_by) {
    for (auto& entry : initial) entry.second = entry.second.to(type);
    return run_reference(c.job, initial, c.data(), static_cast<int>(reference.size()), skipped, disturbed_by);
  };
  if (precision == Precision::fp32) return difference(reference, again(at::kDouble, 0));
  const bool in_fp64 = precision == Precision::fp64;
  Outcome outcome = difference(again(at::kFloat, in_fp64 ? 0 : rounding_to(precision)), reference);
  const double factor = in_fp64 ? kFp64PerFp32 : kAllPerWeights;
  outcome.loss_err *= factor;
  outcome.grad_err *= factor;
  return outcome;
}

}  // namespace sailor::equality
