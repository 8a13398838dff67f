#include "tests/equality/rounding.h"

#include <algorithm>
#include <cmath>

namespace sailor::equality {

Outcome rounding_of(const Case& c, const std::vector<ReferenceStep>& in_fp32) {
  std::map<std::string, at::Tensor> initial = initial_values_of(c.job);
  for (auto& entry : initial) entry.second = entry.second.to(at::kDouble);
  std::vector<bool> skipped;
  for (const ReferenceStep& step : in_fp32) skipped.push_back(step.skipped);
  const auto in_fp64 = run_reference(c.job, initial, c.data(), static_cast<int>(in_fp32.size()), skipped);
  Outcome outcome;
  for (std::size_t step = 0; step < in_fp32.size(); ++step) {
    const ReferenceStep &rounded = in_fp32[step], &exact = in_fp64[step];
    outcome.loss_err = std::max(outcome.loss_err, std::abs(rounded.loss - exact.loss) / std::abs(exact.loss));
    for (const auto& [name, gradient] : exact.gradients)
      outcome.grad_err =
          std::max(outcome.grad_err,
                   (rounded.gradients.at(name).to(at::kDouble) - gradient).abs().max().item<double>() /
                       gradient_scale(gradient, exact));
  }
  return outcome;
}

}  // namespace sailor::equality
