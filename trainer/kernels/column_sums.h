// Sums of the columns of a matrix, in fp32 (fp64), in an order that does not depend on threads: the gradients
// of biases.
#pragma once

#include "trainer/kernels/pack.h"
#include "trainer/kernels/place.h"

namespace sailor::kernels {

inline constexpr int kThreadsOfColumnSums = 256;  // of a block on devices

struct ColumnSums {
  Element type = Element::f32;
  int64_t rows = 0, columns = 0;
  const void* matrix = nullptr;  // [rows, columns]
  void* sums = nullptr;          // [columns], to which they are added; as computed
  void* partial_sums = nullptr;  // parts() times columns elements, as computed

  // The number of parts in which rows are summed.
  SAILOR_KERNEL int64_t parts() const { return rows < 128 ? 1 : rows / 128 < 64 ? rows / 128 : 64; }
  SAILOR_KERNEL bool in_packs() const { return whole_packs(columns, type) && aligned(matrix); }
};

// For devices only. Throws std::logic_error for another place.
void add_column_sums(const ColumnSums& sums, const Place& place);

}  // namespace sailor::kernels
