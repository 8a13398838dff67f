// One rank's side of the comparison: trains and holds its loss and its shards of the gradients against the
// reference, every step.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "tests/equality/case.h"
#include "tests/equality/reference_model.h"
#include "trainer/comm/communicator.h"

namespace sailor::equality {

struct Outcome {
  double loss_err = 0;  // max over steps of |a - b| / |b|
  double grad_err =
      0;  // max over steps and parameters of max|a - b| / max(max|b|, 1e-3 largest gradient of the model)
  int max_in_flight = 0;
  bool in_flight_ok = true;  // never more than min(P - stage, microbatches) on any rank
  std::string worst;         // the parameter and step of grad_err

  void add(const Outcome& other);
};

Outcome train_and_compare(const Case& c, const std::vector<ReferenceStep>& reference, int rank,
                          CommFactory& factory);

// Whole initial values of every parameter.
std::map<std::string, at::Tensor> initial_values_of(const JobSpec& job);

}  // namespace sailor::equality
