#include "planner/search/improvement/zone_program.h"

#include <cstddef>
#include <limits>

namespace sailor {
namespace {

constexpr double kZero = 1e-9;
// Afterwards Bland's rule, which is slow but never cycles; and a limit in case of rounding errors.
constexpr int kSteepPivots = 40, kMostPivots = 400;

}  // namespace

ZoneProgram most_pipelines(const std::vector<RepeatedPattern>& patterns, const std::vector<int64_t>& capacity,
                           double enough) {
  const size_t kinds = patterns.size(), rows = capacity.size(), width = kinds + rows + 1;
  // A row per counter: patterns, slacks, GPUs left. The last row is the gain of one more repetition.
  std::vector<double> table((rows + 1) * width, 0);
  const auto at = [&](size_t row, size_t column) -> double& { return table[row * width + column]; };
  std::vector<size_t> basis(rows);
  for (size_t r = 0; r < rows; ++r) {
    for (size_t k = 0; k < kinds; ++k) at(r, k) = patterns[k].use[r];
    at(r, kinds + r) = 1;
    at(r, width - 1) = static_cast<double>(capacity[r]);
    basis[r] = kinds + r;
  }
  for (size_t k = 0; k < kinds; ++k) at(rows, k) = patterns[k].pipelines;
  for (int pivot = 0; pivot < kMostPivots && -at(rows, width - 1) < enough; ++pivot) {
    size_t in = width;
    for (size_t k = 0; k + 1 < width; ++k) {
      if (at(rows, k) <= kZero || (in != width && at(rows, k) <= at(rows, in))) continue;
      in = k;
      if (pivot >= kSteepPivots) break;
    }
    if (in == width) break;
    size_t out = rows;
    double least = std::numeric_limits<double>::infinity();
    for (size_t r = 0; r < rows; ++r) {
      if (at(r, in) <= kZero) continue;
      const double ratio = at(r, width - 1) / at(r, in);
      if (ratio < least || (ratio == least && basis[r] < basis[out])) {
        least = ratio;
        out = r;
      }
    }
    if (out == rows) break;  // without limit; does not happen where every kind uses something
    const double by = at(out, in);
    for (size_t k = 0; k < width; ++k) at(out, k) /= by;
    for (size_t r = 0; r <= rows; ++r) {
      const double factor = at(r, in);
      if (r == out || factor == 0) continue;
      for (size_t k = 0; k < width; ++k) at(r, k) -= factor * at(out, k);
    }
    basis[out] = in;
  }
  ZoneProgram mix{-at(rows, width - 1), std::vector<double>(kinds, 0)};
  for (size_t r = 0; r < rows; ++r)
    if (basis[r] < kinds) mix.times[basis[r]] = at(r, width - 1);
  return mix;
}

}  // namespace sailor
