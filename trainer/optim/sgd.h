// Stochastic gradient descent, optionally with momentum (Polyak) or Nesterov's:
//
//     g = g + weight_decay p;  b = momentum b + g
//     p = p - lr b             (nesterov: p - lr (g + momentum b); without momentum: p - lr g)
//
// like torch.optim.SGD: decay is part of the gradient, and applies to slices with `decay`, or as their
// groups say. State: momentum, if it is not 0.
#pragma once

#include "trainer/optim/kernels.h"
#include "trainer/optim/optimizer.h"

namespace sailor {

class Sgd : public Optimizer {
 public:
  Sgd(const OptimizerSpec& spec, std::vector<OptimizerSlice> slices, Device* offloads = nullptr);

 protected:
  void begin(double learning_rate) override;
  void update(std::size_t i, int64_t first, int64_t count, double gradient_scale) override;
  void update_on_device(const std::vector<std::size_t>& alike, double gradient_scale) override;

 private:
  SgdCoefficients coefficients(const OptimizerSlice& slice, double gradient_scale) const;

  const OptimizerSpec spec_;
  SgdCoefficients coefficients_;
};

}  // namespace sailor
