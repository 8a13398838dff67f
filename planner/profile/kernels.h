// Times of a transformer's kernels on a GPU, from its data sheet and a few efficiencies: a roofline with
// tiles and waves. Pure.
#pragma once

#include "planner/spec/catalog.h"
#include "planner/spec/job_spec.h"

namespace sailor {

// One GPU at one precision.
struct KernelModel {
  double peak_flops = 0;          // FLOP/s at the precision
  double memory_bytes_per_s = 0;  // data sheet
  int compute_units = 1;          // streaming multiprocessors
  int element_bytes = 2;
  GpuEfficiency efficiency;

  // `batch` products of m x k by k x n. The output is divided into tiles, processed in full waves over the
  // compute units. Every tile has a prologue and an epilogue as long as `gemm_half_depth` elements of k.
  // Never faster than moving operands and result through memory.
  double gemm_s(double m, double n, double k, double batch = 1) const;
  // Memory-bound kernels that read and write `bytes` in total.
  double stream_s(double bytes) const;
  // A fused attention kernel of `flops` operations.
  double fused_attention_s(double flops) const;
};

// Throws InputError when the catalog lacks the peak of that precision, the memory bandwidth or the number of
// compute units.
KernelModel kernel_model(const GpuType& type, Precision precision);
// Does the catalog have the data for kernel_model()?
bool has_kernel_model(const GpuType& type, Precision precision);

}  // namespace sailor
