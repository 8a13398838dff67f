// Normalization of rows, with the residual addition before it: one pass over the activations each way.
//
// s = x + addition (or x), z = (s - mean) r with r = 1 / sqrt(variance + epsilon), y = z (weight_offset +
// weight) + bias. Not centred (RMS norm) the mean is 0, and the variance that of the squares.
//
// For the gradients g of y and h of s, with u = g (weight_offset + weight): x and addition both get
// r (u - mean(u) - z mean(u z)) + h, where a norm that is not centred has no mean(u); the weight gets the sum
// of g z over the rows and the bias that of g. Sums are in fp32 (fp64), in an order that does not depend on
// threads.
#pragma once

#include "trainer/kernels/pack.h"
#include "trainer/kernels/place.h"

namespace sailor::kernels {

// Packs of a row that a thread of a device keeps in registers.
inline constexpr int kHeldByForward = 4, kHeldByBackward = 2;
inline constexpr int kThreadsOfNormBackward = 512, kThreadsOfNormSums = 1024;  // at most

struct NormForward {
  Element type = Element::f32;         // of activations
  Element weight_type = Element::f32;  // of weight and bias: `type`, or f32
  bool centred = false;
  int64_t rows = 0, columns = 0;
  double epsilon = 0, weight_offset = 0;
  const void* x = nullptr;
  const void* addition = nullptr;  // nullptr: none
  const void* weight = nullptr;
  const void* bias = nullptr;  // nullptr: none
  void* sum = nullptr;         // s, rounded before it is normalized; written with an addition only
  void* y = nullptr;
  void* mean = nullptr;   // of each row, as computed (fp32, or fp64); nullptr if not centred
  void* scale = nullptr;  // r of each row, as computed

  SAILOR_KERNEL bool in_packs() const {
    return whole_packs(columns, type) && aligned(x, addition, weight, bias, sum, y);
  }
};

struct NormBackward {
  Element type = Element::f32, weight_type = Element::f32;
  Element gradient_type = Element::f32;  // of those of weight and bias: `type`, or f32
  bool centred = false;
  int64_t rows = 0, columns = 0;
  double weight_offset = 0;
  const void* sum = nullptr;  // s
  const void* weight = nullptr;
  const void* mean = nullptr;
  const void* scale = nullptr;
  const void* for_y = nullptr;
  const void* for_sum = nullptr;  // nullptr: 0
  void* for_x = nullptr;
  bool adds = false;           // to the gradients of weight and bias, which else are overwritten
  void* for_weight = nullptr;  // nullptr: not wanted
  void* for_bias = nullptr;
  void* partial_sums = nullptr;  // parts() times 2 columns elements, as computed; with a gradient of weights

  // The number of parts in which rows are summed.
  SAILOR_KERNEL int64_t parts() const { return rows < 16 ? 1 : rows / 16 < 512 ? rows / 16 : 512; }
  SAILOR_KERNEL bool in_packs() const {
    return whole_packs(columns, type) && aligned(sum, weight, for_y, for_sum, for_x);
  }
};

void norm_forward(const NormForward& norm, const Place& place);
void norm_backward(const NormBackward& norm, const Place& place);

}  // namespace sailor::kernels
