#include "trainer/kernels/column_sums.h"

#include <stdexcept>

#include "trainer/kernels/grid.h"
#include "trainer/kernels/traffic.h"

namespace sailor::kernels {

void add_column_sums(const ColumnSums& sums, const Place& place) {
  if (!place.on_device) throw std::logic_error("these sums are for devices");
  if (sums.rows * sums.columns == 0) return;
  const int64_t computed_bytes = sums.type == Element::f64 ? 8 : 4;
  const RecordedKernel kernel(
      "column sums",
      sums.rows * sums.columns * bytes_of(sums.type) + 2 * (sums.parts() + 1) * sums.columns * computed_bytes,
      2);
  const int64_t elements = sums.in_packs() ? kPackBytes / bytes_of(sums.type) : 1;
  const int64_t of_block = kWarp * elements, ranges = (sums.columns + of_block - 1) / of_block;
  const auto bytes_of_threads = static_cast<std::size_t>(kThreadsOfColumnSums * computed_bytes);
  launch("column_sums", sums.type, ranges * sums.parts(), kThreadsOfColumnSums,
         static_cast<std::size_t>(elements) * bytes_of_threads, &sums, place);
  launch("column_sums_of_parts", sums.type, (sums.columns + kWarp - 1) / kWarp, kThreadsOfColumnSums,
         bytes_of_threads, &sums, place);
}

}  // namespace sailor::kernels
