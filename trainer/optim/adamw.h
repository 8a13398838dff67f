// AdamW (Loshchilov and Hutter 2019, decoupled weight decay), step t from 1:
//
//     m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
//     p = p (1 - lr weight_decay) - lr (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon)
//
// like torch.optim.AdamW. Decay applies to slices with `decay`, or as their groups say. States: m, v.
#pragma once

#include "trainer/optim/kernels.h"
#include "trainer/optim/optimizer.h"

namespace sailor {

class AdamW : public Optimizer {
 public:
  AdamW(const OptimizerSpec& spec, std::vector<OptimizerSlice> slices, Device* offloads = nullptr);

 protected:
  void begin(double learning_rate) override;
  void update(std::size_t i, int64_t first, int64_t count, double gradient_scale) override;
  void update_on_device(const std::vector<std::size_t>& alike, double gradient_scale) override;

 private:
  AdamWCoefficients coefficients(const OptimizerSlice& slice, double gradient_scale) const;

  const OptimizerSpec spec_;
  AdamWCoefficients coefficients_;
};

}  // namespace sailor
