// How long a GPU takes for the kinds of kernels that a transformer is made of, from what its data sheet says
// and a few efficiencies: a roofline that knows tiles and waves. Pure.
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

  // `batch` products of m x k by k x n. The output is dealt to the compute units in tiles, whole waves of
  // them; every tile pays a prologue and an epilogue as long as `gemm_half_depth` elements of k; never faster
  // than its operands and its result pass the memory.
  double gemm_s(double m, double n, double k, double batch = 1) const;
  // Kernels that do little more than read and write `bytes` in all.
  double stream_s(double bytes) const;
  // A fused attention kernel of `flops` operations.
  double fused_attention_s(double flops) const;
};

// Throws InputError when the catalog lacks the peak of that precision, the memory bandwidth or the number of
// compute units of that type.
KernelModel kernel_model(const GpuType& type, Precision precision);
// Does the catalog say enough about the type for kernel_model()?
bool has_kernel_model(const GpuType& type, Precision precision);

}  // namespace sailor
