// Muon (Jordan et al. 2024), as torch.optim.Muon with `adjust_lr_fn="match_rms_adamw"` (Liu et al. 2025), so
// that one learning rate suits all parameters. The weights W of linear layers in blocks:
//
//     M = momentum M + (1 - momentum) G;  U = M         (nesterov: momentum M + (1 - momentum) G)
//     W = W (1 - lr weight_decay) - lr 0.2 sqrt(max(rows, columns)) orthogonalized(U)
//
// and everything else as AdamW does, with the same learning rate. State: momentum; m and v elsewhere.
//
// A step has two parts, because a matrix is orthogonalized as a whole, and its elements are spread over
// ranks:
//
//     muon.start(gradient_scale);    // directions() is U, and no state has changed
//     orthogonalization.run(...);    // ... and now the orthogonalized matrix, scaled
//     muon.step(learning_rate, gradient_scale);
#pragma once

#include <vector>

#include "trainer/optim/adamw.h"

namespace sailor {

class Muon : public AdamW {
 public:
  Muon(const OptimizerSpec& spec, std::vector<OptimizerSlice> slices, Device* offloads = nullptr);

  void start(double gradient_scale);
  void start_by_operators(double gradient_scale);  // as on a device, wherever the slices are
  // Of slice i: 1-D, as long as it and in the type of its gradient; undefined unless it is `linear`. It
  // stays until the next start().
  const at::Tensor& direction(std::size_t i) const { return directions_[i]; }
  // Frees the directions until the next start().
  void drop_directions();

 protected:
  void begin(double learning_rate) override;
  void update(std::size_t i, int64_t first, int64_t count, double gradient_scale) override;
  void update_on_device(const std::vector<std::size_t>& alike, double gradient_scale) override;

 private:
  MuonCoefficients coefficients(const OptimizerSlice& slice, double gradient_scale) const;
  std::vector<std::size_t> linear_slices();  // whose directions exist after it

  const OptimizerSpec spec_;
  double learning_rate_ = 0;
  std::vector<at::Tensor> directions_;  // by slice; parts of one tensor
};

}  // namespace sailor
