#include "tests/equality/rounding.h"

#include <algorithm>
#include <cmath>

#include "trainer/model/element_types.h"

namespace sailor::equality {
namespace {

constexpr double kFp64PerFp32 = 1.0 / (1 << 29);  // of their roundings

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
  const auto again = [&](at::ScalarType type, std::optional<at::ScalarType> rounded_to) {
    for (auto& entry : initial) entry.second = entry.second.to(type);
    return run_reference(c.job, initial, c.data(), static_cast<int>(reference.size()), skipped, rounded_to);
  };
  if (precision == Precision::fp32) return difference(reference, again(at::kDouble, std::nullopt));
  if (precision != Precision::fp64) return difference(again(at::kFloat, scalar_type(precision)), reference);
  Outcome outcome = difference(again(at::kFloat, std::nullopt), reference);
  outcome.loss_err *= kFp64PerFp32;
  outcome.grad_err *= kFp64PerFp32;
  return outcome;
}

}  // namespace sailor::equality
