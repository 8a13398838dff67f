// The inner loops of the optimizers over plain memory: one pass that reads and writes every array once.
// Without libtorch, so that they can be compiled with their own flags.
//
// Only additions, multiplications, divisions and square roots in a fixed order, never fused: IEEE 754 makes
// the result equal on every CPU, for any vector width. T is float or double, R the type of a rounded copy:
// Bf16 or Fp16 of floats, or void, and then there is none.
#pragma once

#include <cstdint>

#include "trainer/comm/narrow_float.h"

namespace sailor {

struct AdamWCoefficients {
  double beta1 = 0, beta2 = 0, epsilon = 0;
  double keep = 1;               // 1 - lr * weight decay
  double step_size = 0;          // lr / (1 - beta1^t)
  double second_correction = 1;  // 1 / (1 - beta2^t)
  double gradient_scale = 1;
  // The inputs of these coefficients.
  double learning_rate = 0, weight_decay = 0;
};

// Updates p, m, v in place from g, `count` elements each; the arrays do not overlap. `rounded` receives p
// rounded to nearest even; nullptr for void.
template <class T, class R>
void adamw_update(T* p, R* rounded, const T* g, T* m, T* v, int64_t count, const AdamWCoefficients& c);

struct MuonCoefficients {
  double learning_rate = 0, keep = 1, momentum = 0, gradient_scale = 1;
  bool nesterov = true;
};

// The direction before it is orthogonalized: reads g and the momentum.
template <class T>
void muon_direction(T* direction, const T* g, const T* momentum, int64_t count, const MuonCoefficients& c);
// Updates p and momentum from g and the direction after that.
template <class T, class R>
void muon_update(T* p, R* rounded, const T* g, T* momentum, const T* direction, int64_t count,
                 const MuonCoefficients& c);

struct SgdCoefficients {
  double learning_rate = 0, weight_decay = 0, momentum = 0, gradient_scale = 1;
  bool nesterov = false;
};

// As above; `momentum` is nullptr without momentum.
template <class T, class R>
void sgd_update(T* p, R* rounded, const T* g, T* momentum, int64_t count, const SgdCoefficients& c);

// average = decay average + (1 - decay) value, `count` elements each.
template <class T>
void average_update(T* average, const T* value, int64_t count, double decay);

}  // namespace sailor
