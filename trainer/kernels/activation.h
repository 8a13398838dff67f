// The activation functions of MLPs, plain and gated: one pass each way.
//
// Plain: y = f(x). Gated: x has pairs (a, b), neighbours in memory as the rows of a gate-up weight are, and
// y = f(a) b.
#pragma once

#include "trainer/kernels/place.h"

namespace sailor::kernels {

inline constexpr int kThreadsOfActivation = 256;  // of a block on devices

enum class ActivationKind { gelu, gelu_tanh, silu, relu };

struct ActivationPass {
  Element type = Element::f32;
  ActivationKind kind = ActivationKind::gelu;
  bool gated = false;
  int64_t count = 0;            // elements of y
  const void* x = nullptr;      // twice as many if gated
  const void* for_y = nullptr;  // the gradient of y; read by the backward
  void* result = nullptr;       // y, or the gradient of x
};

void activation_forward(const ActivationPass& pass, const Place& place);
void activation_backward(const ActivationPass& pass, const Place& place);

}  // namespace sailor::kernels
