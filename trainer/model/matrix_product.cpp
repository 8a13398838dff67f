#include "trainer/model/matrix_product.h"

#include <optional>
#include <stdexcept>
#include <string>

#include "trainer/kernels/traffic.h"
#include "trainer/model/torch_compat.h"

#if defined(SAILOR_ONEDNN)
#include <oneapi/dnnl/dnnl.h>
#endif

namespace sailor {
namespace {

int64_t nbytes(const at::Tensor& tensor) {
  return static_cast<int64_t>(tensor.nbytes());
}

bool processor_has_bf16_products() {
#if defined(__x86_64__)
  static const bool has = __builtin_cpu_supports("avx512bw") != 0 &&
                          __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0;
  return has;
#else
  return true;
#endif
}

#if defined(SAILOR_ONEDNN)

bool processor_has_avx512() {
#if defined(__x86_64__)
  static const bool has = __builtin_cpu_supports("avx512f") != 0;
  return has;
#else
  return false;
#endif
}

// Memory layout of a matrix in BLAS terms: row by row, or (transposed) column by column.
struct MatrixLayout {
  char transposed = 'N';
  int64_t leading = 0;
};

std::optional<MatrixLayout> layout_of(const at::Tensor& matrix) {
  const int64_t rows = matrix.size(0), columns = matrix.size(1);
  if (matrix.stride(1) == 1 && matrix.stride(0) >= columns) return MatrixLayout{'N', matrix.stride(0)};
  if (matrix.stride(0) == 1 && matrix.stride(1) >= rows) return MatrixLayout{'T', matrix.stride(1)};
  return std::nullopt;
}

bool is_for_onednn(const at::Tensor& matrix) {
  return matrix.scalar_type() == at::kFloat && matrix.device().is_cpu() && matrix.dim() == 2 &&
         matrix.numel() > 0 && layout_of(matrix) && processor_has_avx512();
}

// Its rows are one after the other, too.
bool is_sum_for_onednn(const at::Tensor& matrix) {
  return is_for_onednn(matrix) && layout_of(matrix)->transposed == 'N';
}

// sum = a b + beta sum. All are for oneDNN.
void multiply(at::Tensor& sum, const at::Tensor& a, const at::Tensor& b, float beta) {
  const MatrixLayout of_a = *layout_of(a), of_b = *layout_of(b);
  const dnnl_status_t status =
      dnnl_sgemm(of_a.transposed, of_b.transposed, a.size(0), b.size(1), a.size(1), 1.0F, a.data_ptr<float>(),
                 of_a.leading, b.data_ptr<float>(), of_b.leading, beta, sum.data_ptr<float>(), sum.stride(0));
  if (status != dnnl_success)
    throw std::runtime_error("oneDNN could not multiply: status " + std::to_string(status));
}

#else

bool is_for_onednn(const at::Tensor&) {
  return false;
}
bool is_sum_for_onednn(const at::Tensor&) {
  return false;
}
void multiply(at::Tensor&, const at::Tensor&, const at::Tensor&, float) {}

#endif

}  // namespace

bool needs_fp32_products(const at::Tensor& x) {
  if (!x.device().is_cpu()) return false;
  return x.scalar_type() == at::kHalf || (x.scalar_type() == at::kBFloat16 && !processor_has_bf16_products());
}

at::Tensor matrix_product(const at::Tensor& a, const at::Tensor& b, const at::Tensor& bias) {
  const kernels::RecordedKernel kernel(
      "matrix product",
      nbytes(a) + nbytes(b) + a.size(0) * b.size(1) * static_cast<int64_t>(a.element_size()));
  if (needs_fp32_products(a) && needs_fp32_products(b)) {
    const at::Tensor wide_bias = bias.defined() ? bias.to(at::kFloat) : bias;
    return matrix_product(a.to(at::kFloat), b.to(at::kFloat), wide_bias).to(a.scalar_type());
  }
  if (!is_for_onednn(a) || !is_for_onednn(b)) return bias.defined() ? at::addmm(bias, a, b) : at::mm(a, b);
  TORCH_CHECK(a.size(1) == b.size(0), "matrix_product: ", a.sizes(), " times ", b.sizes());
  at::Tensor result = at::empty({a.size(0), b.size(1)}, a.options());
  if (bias.defined()) result.copy_(bias.expand_as(result));
  multiply(result, a, b, bias.defined() ? 1.0F : 0.0F);
  return result;
}

void add_matrix_product(at::Tensor& sum, const at::Tensor& a, const at::Tensor& b) {
  const kernels::RecordedKernel kernel("added matrix product", nbytes(a) + nbytes(b) + 2 * nbytes(sum));
  if (needs_fp32_products(a) && needs_fp32_products(b)) {
    at::Tensor wide_sum = sum.to(at::kFloat);  // itself, if it is fp32
    add_matrix_product(wide_sum, a.to(at::kFloat), b.to(at::kFloat));
    if (!wide_sum.is_same(sum)) sum.copy_(wide_sum);
    return;
  }
  if (sum.scalar_type() != a.scalar_type()) return add_product_in_fp32(sum, a, b);
  if (!is_for_onednn(a) || !is_for_onednn(b) || !is_sum_for_onednn(sum)) {
    sum.addmm_(a, b);
    return;
  }
  TORCH_CHECK(a.size(1) == b.size(0) && sum.size(0) == a.size(0) && sum.size(1) == b.size(1),
              "add_matrix_product: ", a.sizes(), " times ", b.sizes(), " to ", sum.sizes());
  multiply(sum, a, b, 1);
}

}  // namespace sailor
