// AdamW over a range of elements: one pass that reads and writes every array once. The formula of
// trainer/optim/kernels.h, which is what processors run.
#pragma once

#include "trainer/kernels/place.h"

namespace sailor::kernels {

inline constexpr int kThreadsOfAdamW = 256;  // of a block on devices

struct AdamWUpdate {
  Element type = Element::f32;  // f32 or f64
  int64_t count = 0;
  void* value = nullptr;
  void* rounded = nullptr;  // receives `value` in 16 bits; nullptr: nothing does
  Element rounded_type = Element::bf16;
  const void* gradient = nullptr;
  void* m = nullptr;
  void* v = nullptr;
  // See AdamWCoefficients.
  double beta1 = 0, beta2 = 0, epsilon = 0, keep = 1, step_size = 0, second_correction = 1,
         gradient_scale = 1;
};

// For devices only. Throws std::logic_error for another place.
void adamw(const AdamWUpdate& update, const Place& place);

}  // namespace sailor::kernels
