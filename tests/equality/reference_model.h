// The other side of the comparison: the whole model on one process with plain ATen autograd, written down a
// second time (the families in reference/). It shares with the trainer nothing but the initial values, the
// sequences of each step and the function that random numbers come from; forward, loss, dropout and AdamW are
// its own.
#pragma once

#include <ATen/ATen.h>

#include <map>
#include <string>
#include <vector>

#include "planner/spec/job_spec.h"
#include "trainer/data/token_data.h"

namespace sailor::equality {

struct ReferenceStep {
  double loss = 0;
  double largest_gradient = 0;  // max |g| over the model
  double grad_norm = 0;
  std::map<std::string, at::Tensor> gradients;  // whole tensors by parameter name
};

// `initial` holds every parameter's whole initial value by name.
std::vector<ReferenceStep> run_reference(const JobSpec& job, const std::map<std::string, at::Tensor>& initial,
                                         const TokenData& data, int steps);

// Through a file, for ranks in other processes.
void save_reference(const std::vector<ReferenceStep>& steps, const std::string& path);
std::vector<ReferenceStep> load_reference(const std::string& path, at::ScalarType dtype);

}  // namespace sailor::equality
