// The noise of gradients, from those of the pipelines and their sum (McCandlish et al. 2018, An Empirical
// Model of Large-Batch Training, appendix A.1, for pipelines of different sizes). Pure.
//
// Let g be the true gradient of the mean loss and S the trace of the covariance of one sequence's gradient. A
// batch of b sequences has E|mean gradient|^2 = |g|^2 + S / b. With the global batch's B sequences divided
// into b_p per pipeline, q = sum (b_p / B)^2, G_p pipeline p's part of the gradient and G their sum:
//
//     |g|^2 = (|G|^2 - sum |G_p|^2) / (1 - q)        S = B (sum |G_p|^2 - q |G|^2) / (1 - q)
//
// Both are unbiased and, of one step, far from exact: they are to be averaged over steps, S / |g|^2 of the
// averages then is the noise scale in sequences.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace sailor {

struct GradientNoise {
  double signal = 0;  // |g|^2
  double noise = 0;   // S
};

// Nothing of a single pipeline. `squares` are |G_p|^2, `sequences` the b_p, both by pipeline; `square` is
// |G|^2.
std::optional<GradientNoise> gradient_noise(const std::vector<double>& squares,
                                            const std::vector<int64_t>& sequences, double square);

}  // namespace sailor
