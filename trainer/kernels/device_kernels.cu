// The device kernels of this module, one per type of elements, compiled by nvcc to a module that launch.cpp
// loads. A kernel NAME_TYPE takes the structure of its header.
#include "trainer/kernels/activation_blocks.h"
#include "trainer/kernels/adamw_blocks.h"
#include "trainer/kernels/column_sums_blocks.h"
#include "trainer/kernels/cross_entropy_blocks.h"
#include "trainer/kernels/head_blocks.h"
#include "trainer/kernels/norm_blocks.h"

namespace sailor::kernels {

struct CudaGrid {
  __device__ int block() const { return static_cast<int>(blockIdx.x); }
  __device__ int blocks() const { return static_cast<int>(gridDim.x); }
  __device__ int thread() const { return static_cast<int>(threadIdx.x); }
  __device__ int threads() const { return static_cast<int>(blockDim.x); }
  __device__ void barrier() const { __syncthreads(); }
  template <class R>
  __device__ R shuffle_xor(R value, int lanes) const {
    return __shfl_xor_sync(0xffffffffU, value, lanes);
  }
  __device__ unsigned char* shared() const {
    extern __shared__ __align__(16) unsigned char memory[];
    return memory;
  }
};

// `threads`: of a block, at most.
#define KERNEL_OF_TYPE(name, Arguments, threads, T, suffix)                                    \
  extern "C" __global__ void __launch_bounds__(threads) name##_##suffix(Arguments arguments) { \
    CudaGrid grid;                                                                             \
    name##_blocks<T>(grid, arguments);                                                         \
  }
#define KERNEL(name, Arguments, threads)                \
  KERNEL_OF_TYPE(name, Arguments, threads, float, f32)  \
  KERNEL_OF_TYPE(name, Arguments, threads, double, f64) \
  KERNEL_OF_TYPE(name, Arguments, threads, Bf16, bf16)  \
  KERNEL_OF_TYPE(name, Arguments, threads, Fp16, f16)

KERNEL(norm_forward, NormForward, kMaxThreads)
KERNEL(norm_backward, NormBackward, kThreadsOfNormBackward)
KERNEL(norm_sums, NormBackward, kThreadsOfNormSums)
KERNEL(activation_forward, ActivationPass, kThreadsOfActivation)
KERNEL(activation_backward, ActivationPass, kThreadsOfActivation)
KERNEL(move_heads, HeadMove, kThreadsOfMoveHeads)
KERNEL(column_sums, ColumnSums, kThreadsOfColumnSums)
KERNEL(column_sums_of_parts, ColumnSums, kThreadsOfColumnSums)
KERNEL(cross_entropy_forward, CrossEntropy, kThreadsOfCrossEntropy)
KERNEL(cross_entropy_backward, CrossEntropy, kThreadsOfCrossEntropy)
KERNEL_OF_TYPE(adamw, AdamWUpdate, kThreadsOfAdamW, float, f32)
KERNEL_OF_TYPE(adamw, AdamWUpdate, kThreadsOfAdamW, double, f64)

}  // namespace sailor::kernels
