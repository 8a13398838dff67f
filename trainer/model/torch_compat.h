// The differences between libtorch 1.13 and 2.x that affect the trainer, in one place.
#pragma once

#include <ATen/ATen.h>
#include <torch/version.h>

namespace sailor {

// Can causal_attention() have fewer heads of keys and values than of queries?
inline bool attends_in_groups(const at::Tensor& query) {
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 5)
  return query.is_cuda();
#else
  static_cast<void>(query);
  return false;
#endif
}

// Causal attention over [batch, heads, tokens, head size], scaled by 1/sqrt(head size), with the library's
// fused kernel if there is one.
inline at::Tensor causal_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 5)
  return at::scaled_dot_product_attention(query, key, value, {}, /*dropout_p=*/0.0, /*is_causal=*/true,
                                          /*scale=*/{}, /*enable_gqa=*/query.size(1) != key.size(1));
#elif TORCH_VERSION_MAJOR >= 2
  return at::scaled_dot_product_attention(query, key, value, {}, /*dropout_p=*/0.0, /*is_causal=*/true);
#else
  return std::get<0>(at::_scaled_dot_product_attention(query, key, value, {}, /*dropout_p=*/0.0,
                                                       /*need_attn_weights=*/false, /*is_causal=*/true));
#endif
}

// The same with a [tokens, tokens] mask that is added to the scores, instead of the causal one.
inline at::Tensor masked_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                                   const at::Tensor& mask) {
#if TORCH_VERSION_MAJOR >= 2
  return at::scaled_dot_product_attention(query, key, value, mask, /*dropout_p=*/0.0, /*is_causal=*/false);
#else
  return std::get<0>(at::_scaled_dot_product_attention(query, key, value, mask, /*dropout_p=*/0.0,
                                                       /*need_attn_weights=*/false, /*is_causal=*/false));
#endif
}

// sum += a b, of 16-bit matrices to one in fp32.
inline void add_product_in_fp32(at::Tensor& sum, const at::Tensor& a, const at::Tensor& b) {
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 8)
  if (sum.is_cuda()) {
    at::addmm_out(sum, sum, a, b, at::kFloat);
    return;
  }
#endif
  sum.add_(at::mm(a, b));
}

// Whether cuBLAS may sum bf16 products in 16 bit. Releases before 2.0 have no such setting.
inline void allow_bf16_sums(at::Context& context, bool allowed) {
#if TORCH_VERSION_MAJOR >= 2
  context.setAllowBF16ReductionCuBLAS(allowed);
#else
  static_cast<void>(context);
  static_cast<void>(allowed);
#endif
}

// With deterministic algorithms, releases since 2.2 fill new tensors with NaN, to find reads of memory that
// was never written.
inline void leave_new_tensors_unfilled(at::Context& context) {
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 2)
  context.setDeterministicFillUninitializedMemory(false);
#else
  static_cast<void>(context);
#endif
}

}  // namespace sailor
