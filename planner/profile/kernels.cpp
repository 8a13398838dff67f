#include "planner/profile/kernels.h"

#include <algorithm>
#include <cmath>

#include "planner/spec/error.h"

namespace sailor {
namespace {

// Rows and columns of the output tile that matrix libraries use, and of the smallest one, for narrow
// products.
constexpr double kTile = 128, kSmallestTile = 16;

double tile_for(double width) {
  double tile = kSmallestTile;
  while (tile < width && tile < kTile) tile *= 2;
  return tile;
}
// Widths that are no multiple of this many elements cannot be loaded in whole vectors.
constexpr int kVector = 8;

bool is_aligned(double width) {
  return std::fmod(width, kVector) == 0;
}

}  // namespace

double KernelModel::gemm_s(double m, double n, double k, double batch) const {
  const double unit_flops = peak_flops * efficiency.gemm / compute_units;
  const double rows = tile_for(m), columns = tile_for(n);
  const double tiles = std::ceil(m / rows) * std::ceil(n / columns) * batch;
  const double waves = std::max(1.0, std::ceil(tiles / compute_units));
  const double compute_s = waves * 2 * rows * columns * (k + efficiency.gemm_half_depth) / unit_flops;
  const double moved_s = stream_s(element_bytes * batch * (m * k + k * n + m * n));
  const double alignment = is_aligned(m) && is_aligned(n) && is_aligned(k) ? 1 : efficiency.unaligned;
  return std::max(compute_s, moved_s) / alignment;
}

double KernelModel::stream_s(double bytes) const {
  return bytes / (memory_bytes_per_s * efficiency.memory);
}

double KernelModel::fused_attention_s(double flops) const {
  return flops / (peak_flops * efficiency.gemm * efficiency.attention);
}

bool has_kernel_model(const GpuType& type, Precision precision) {
  return type.flops(precision) && type.memory_bandwidth_bytes_per_s > 0 && type.compute_units > 0;
}

KernelModel kernel_model(const GpuType& type, Precision precision) {
  if (!has_kernel_model(type, precision))
    throw InputError("GPU type \"" + type.name + "\": an estimate needs peak_flops." +
                     kind_of(precision).peak_flops_key +
                     ", memory_bandwidth and compute_units in the catalog");
  return {*type.flops(precision), type.memory_bandwidth_bytes_per_s, type.compute_units,
          element_bytes(precision), type.efficiency};
}

}  // namespace sailor
