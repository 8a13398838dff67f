// The reference of the comparison: the whole model on one process with plain ATen autograd, implemented
// independently (the families are in reference/). It only shares the initial values, the sequences of each
// step with their documents and the random number function with the trainer; forward, loss, dropout, AdamW
// and Muon are its own. With data.document_mask every document is computed alone.
#pragma once

#include <ATen/ATen.h>

#include <map>
#include <string>
#include <vector>

#include "planner/spec/job_spec.h"
#include "trainer/data/token_data.h"

namespace sailor::equality {

struct ReferenceStep {
  double loss = 0, z_loss = 0;
  double largest_gradient = 0;  // max |g| over the model
  double grad_norm = 0;
  double loss_scale = 0;    // of training in fp16
  bool skipped = false;     // no update: the trainer's gradients overflowed, or these are a spike
  int64_t spikes = 0;       // steps skipped for a spike until here
  bool close_call = false;  // rounding may decide whether it is one
  std::map<std::string, at::Tensor> gradients;  // unsharded tensors by parameter name
  std::map<std::string, at::Tensor> averages;   // of parameters after the step, of jobs with training.ema
};

// `initial` has every parameter's unsharded initial value by name. `skipped`: the steps without an update;
// empty: spikes are the only ones. `disturbed_by`: computation sees weights that are off by a random part of
// themselves up to this, another one at each step.
std::vector<ReferenceStep> run_reference(const JobSpec& job, const std::map<std::string, at::Tensor>& initial,
                                         const TokenData& data, int steps,
                                         const std::vector<bool>& skipped = {}, double disturbed_by = 0);

// As a file, for ranks in other processes.
void save_reference(const std::vector<ReferenceStep>& steps, const std::string& path);
std::vector<ReferenceStep> load_reference(const std::string& path, at::ScalarType dtype);

}  // namespace sailor::equality
