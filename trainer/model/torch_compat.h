// The differences between libtorch 1.13 and 2.x that affect the trainer, in one place.
#pragma once

#include <ATen/ATen.h>
#include <torch/version.h>

#include <stdexcept>
#include <tuple>

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

#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 5)
#define SAILOR_HAS_FUSED_PARTS 1
#else
#define SAILOR_HAS_FUSED_PARTS 0
#endif

// Do the next two functions work for such queries? Else the library has no kernel that returns log sums.
inline bool has_fused_parts(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
#if SAILOR_HAS_FUSED_PARTS
  if (query.numel() == 0 || key.numel() == 0) return false;
  if (!query.is_cuda()) return true;
  constexpr int64_t flash = 1,
                    cudnn = 3;  // of at::SDPBackend; where cuDNN is chosen, flash attention runs, too
  const int64_t chosen = at::_fused_sdp_choice(query, key, value, {}, /*dropout_p=*/0.0, /*is_causal=*/false,
                                               /*scale=*/{}, /*enable_gqa=*/query.size(1) != key.size(1));
  return (chosen == flash || chosen == cudnn) && query.size(3) % 8 == 0 && query.size(3) <= 256;
#else
  static_cast<void>(query), static_cast<void>(key), static_cast<void>(value);
  return false;
#endif
}

// The result of partial attention (partial_attention.h) and its log sums. Fewer heads of keys and values than
// of queries only where attends_in_groups().
inline std::tuple<at::Tensor, at::Tensor> fused_part(const at::Tensor& query, const at::Tensor& key,
                                                     const at::Tensor& value, bool causal, double scale) {
#if SAILOR_HAS_FUSED_PARTS
  if (!query.is_cuda())
    return at::_scaled_dot_product_flash_attention_for_cpu(query, key, value, /*dropout_p=*/0.0, causal, {},
                                                           scale);
  auto result = at::_scaled_dot_product_flash_attention(query, key, value, /*dropout_p=*/0.0, causal,
                                                        /*return_debug_mask=*/false, scale);
  return {std::get<0>(result), std::get<1>(result)};
#else
  static_cast<void>(query), static_cast<void>(key), static_cast<void>(value);
  static_cast<void>(causal), static_cast<void>(scale);
  throw std::logic_error("no fused kernel returns log sums");
#endif
}

// Its gradients for query, key and value; `out` and `log_sum`, which is contiguous, are those of all parts.
inline std::tuple<at::Tensor, at::Tensor, at::Tensor> fused_part_backward(
    const at::Tensor& gradient, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
    const at::Tensor& out, const at::Tensor& log_sum, bool causal, double scale) {
#if SAILOR_HAS_FUSED_PARTS
  if (!query.is_cuda())
    return at::_scaled_dot_product_flash_attention_for_cpu_backward(gradient, query, key, value, out, log_sum,
                                                                    /*dropout_p=*/0.0, causal, {}, scale);
  // Without dropout the state of the generator is not read.
  const at::Tensor unused = at::empty({2}, query.options().dtype(at::kLong));
  return at::_scaled_dot_product_flash_attention_backward(gradient, query, key, value, out, log_sum, {}, {},
                                                          query.size(2), key.size(2), /*dropout_p=*/0.0,
                                                          causal, unused, unused, scale);
#else
  static_cast<void>(gradient), static_cast<void>(query), static_cast<void>(key), static_cast<void>(value);
  static_cast<void>(out), static_cast<void>(log_sum), static_cast<void>(causal), static_cast<void>(scale);
  throw std::logic_error("no fused kernel returns log sums");
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
