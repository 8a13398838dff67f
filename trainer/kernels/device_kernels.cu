// The device kernels of this module, one per type of elements, compiled by nvcc to a module that launch.cpp
// loads. A kernel NAME_TYPE takes the structure of its header.
#include "trainer/kernels/activation_blocks.h"
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

#define KERNEL_OF_TYPE(name, Arguments, T, suffix)                                                 \
  extern "C" __global__ void __launch_bounds__(kMaxThreads) name##_##suffix(Arguments arguments) { \
    CudaGrid grid;                                                                                 \
    name##_blocks<T>(grid, arguments);                                                             \
  }
#define KERNEL(name, Arguments)                \
  KERNEL_OF_TYPE(name, Arguments, float, f32)  \
  KERNEL_OF_TYPE(name, Arguments, double, f64) \
  KERNEL_OF_TYPE(name, Arguments, Bf16, bf16)  \
  KERNEL_OF_TYPE(name, Arguments, Fp16, f16)

KERNEL(norm_forward, NormForward)
KERNEL(norm_backward, NormBackward)
KERNEL(norm_sums, NormBackward)
KERNEL(activation_forward, ActivationPass)
KERNEL(activation_backward, ActivationPass)
KERNEL(move_heads, HeadMove)
KERNEL(cross_entropy_forward, CrossEntropy)
KERNEL(cross_entropy_backward, CrossEntropy)

}  // namespace sailor::kernels
