// Constants of the simulator that fit measured runs best: a few runs of one framework on some GPU types say
// how fast its kernels are there, what its host and its network add, and how far to trust that. Pure.
//
// The fit is a maximum a posteriori estimate: every constant has an expected value and a width, the standard
// deviation of its logarithm; the errors of the runs have one of 5 %, with tails as of a Laplace distribution
// so that a disturbed run does not decide. So a constant that the runs say nothing about stays as expected,
// and a handful of runs is enough.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "planner/plan/measured_run.h"
#include "planner/simulator/assumptions.h"
#include "planner/simulator/prediction.h"

namespace sailor {

struct FreeConstant {
  std::string path;     // as in a calibration file
  double expected = 1;  // > 0
  double width = 0.15;  // standard deviation of ln(value / expected)
  double most = 1e18;   // largest possible value
};

using PredictRun = std::function<Prediction(const MeasuredRun&, const Assumptions&)>;

// The constants that runs of `framework` can say something about: efficiencies of their GPU types, times of
// the host, and, where there are plans of these kinds, costs of tensor parallelism and of several nodes.
// With `memory`, also what a rank holds before any tensor. Expected are the present values, or, where these
// are 0, usual ones.
std::vector<FreeConstant> free_constants(const std::vector<MeasuredRun>& runs,
                                         const FrameworkStyle& framework, const Assumptions& assumptions,
                                         bool memory);

// Values by path. Runs that failed or were not measured are ignored. Deterministic; at most 80 predictions of
// every run per constant. Throws what `predict` throws.
std::map<std::string, double> fit_constants(const std::vector<MeasuredRun>& runs,
                                            const std::vector<FreeConstant>& constants,
                                            const Assumptions& assumptions, const PredictRun& predict,
                                            bool with_memory);

}  // namespace sailor
