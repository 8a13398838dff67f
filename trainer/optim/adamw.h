// AdamW (Loshchilov and Hutter, decoupled weight decay) over the parameters of one rank:
//
//     m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
//     p = p (1 - lr weight_decay) - lr (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon)
//
// Decay applies to matrices only (Parameter::decay), not to norms and biases. Elementwise, so that any
// sharding gives the same values. State has the type of the parameter. One thread per object.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "planner/spec/job_spec.h"
#include "trainer/model/layer.h"

namespace sailor {

class AdamW {
 public:
  struct State {
    Parameter* parameter;
    at::Tensor m;
    at::Tensor v;
  };

  // The parameters outlive the optimizer.
  AdamW(const OptimizerSpec& spec, const std::vector<Parameter*>& parameters);

  // Updates every parameter from its gradient.
  void step();

  int64_t steps_done() const { return steps_done_; }
  void set_steps_done(int64_t steps) { steps_done_ = steps; }  // after loading a checkpoint
  std::vector<State>& states() { return states_; }             // in the order of the parameters

 private:
  OptimizerSpec spec_;
  std::vector<State> states_;
  int64_t steps_done_ = 0;
};

}  // namespace sailor
