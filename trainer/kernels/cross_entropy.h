// Cross entropy over a vocabulary, of which a rank has a range of columns. The forward reads the logits
// once; the backward replaces them by their gradient.
//
// Forward, for each row of logits x: `largest` = max_j x_j (at least the lowest finite number), `sum` = sum_j
// exp(x_j - largest), and `score` = x_t for the target's column t, or 0 where this rank does not have it.
// Backward: x_j becomes of_softmax exp(x_j - shift) - of_target (j == t), with of_softmax, of_target and
// shift of the row. Columns from `real` on are padding: they do not count, and their gradient is 0.
#pragma once

#include "trainer/kernels/place.h"

namespace sailor::kernels {

inline constexpr int kThreadsOfCrossEntropy = 512;  // of a block on devices, at most

struct CrossEntropy {
  Element type = Element::f32;
  int64_t rows = 0, columns = 0, real = 0;
  int64_t first_column = 0;          // of this rank, in the vocabulary
  void* logits = nullptr;            // [rows, columns]
  const int64_t* targets = nullptr;  // in the vocabulary; negative: the row does not count

  // One number a row, fp32 (fp64): results of the forward; the lowest number, 0 and 0 where no column is
  // real.
  void* largest = nullptr;
  void* sum = nullptr;
  void* score = nullptr;
  // Read by the backward. Where of_softmax and of_target are 0, the gradient is 0.
  const void* shift = nullptr;
  const void* of_softmax = nullptr;
  const void* of_target = nullptr;
};

void cross_entropy_forward(const CrossEntropy& loss, const Place& place);
void cross_entropy_backward(const CrossEntropy& loss, const Place& place);

}  // namespace sailor::kernels
