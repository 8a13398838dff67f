#include "trainer/model/weight_product.h"

#include <torch/csrc/autograd/custom_function.h>

#include <vector>

#include "trainer/kernels/column_sums.h"
#include "trainer/model/element_types.h"
#include "trainer/model/kernel_arguments.h"
#include "trainer/model/matrix_product.h"
#include "trainer/model/tensor_parallel.h"

namespace sailor {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

// Communicators outlive every graph that uses them. 0 = alone.
int64_t handle_of(Communicator* tp) {
  return tp && tp->size() > 1 ? reinterpret_cast<int64_t>(tp) : 0;
}
void sum_over(int64_t handle, at::Tensor& tensor) {
  if (handle != 0) all_reduce(*reinterpret_cast<Communicator*>(handle), tensor);
}

at::Tensor as_rows(const at::Tensor& x) {
  return x.reshape({-1, x.size(-1)});
}
at::Tensor like_rows_of(const at::Tensor& rows, const at::Tensor& x) {
  std::vector<int64_t> sizes = x.sizes().vec();
  sizes.back() = rows.size(1);
  return rows.view(sizes);
}

// Autograd's functions want defined arguments: no bias is one without elements.
at::Tensor defined(const at::Tensor& bias, const at::Tensor& weight) {
  return bias.defined() ? bias : at::empty({0}, weight.options());
}

// y = x M + b with M = `weight`, or its transpose. For the gradient g of y: x gets g M^T, M gets x^T g, and b
// the sum of g's rows. Of a frozen weight x is not kept, and has no gradient computed; nor has a frozen bias.
struct WeightProduct : torch::autograd::Function<WeightProduct> {
  static Variable forward(AutogradContext* context, const Variable& x, const Variable& weight,
                          const Variable& bias, bool transposed, int64_t sum_result, int64_t sum_gradient) {
    const bool has_bias = bias.numel() > 0;
    context->save_for_backward({weight.requires_grad() ? x : Variable(), weight, bias});
    context->saved_data["for_bias"] = has_bias && bias.requires_grad();
    context->saved_data["transposed"] = transposed;
    context->saved_data["sum_gradient"] = sum_gradient;
    const at::Tensor matrix = transposed ? weight.t() : weight;
    // The bias counts once, however many ranks there are.
    const bool with_bias = has_bias && sum_result == 0;
    at::Tensor rows = matrix_product(as_rows(x), matrix, with_bias ? bias : at::Tensor());
    sum_over(sum_result, rows);
    if (has_bias && !with_bias) rows.add_(bias);
    return like_rows_of(rows, x);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], weight = saved[1];
    const bool transposed = context->saved_data["transposed"].toBool();
    const at::Tensor g = as_rows(gradients[0]);

    at::Tensor for_x = matrix_product(g, transposed ? weight : weight.t());
    sum_over(context->saved_data["sum_gradient"].toInt(), for_x);

    at::Tensor for_bias;
    if (context->saved_data["for_bias"].toBool()) for_bias = bias_gradient(saved[2], g);
    return {like_rows_of(for_x, gradients[0]),
            x.defined() ? for_weight(x, weight, g, transposed) : Variable(),
            for_bias,
            Variable(),
            Variable(),
            Variable()};
  }

  // Undefined if it was added to the bias's gradient.
  static at::Tensor bias_gradient(const at::Tensor& bias, const at::Tensor& g) {
    at::Tensor sum = accumulated_gradient(bias);
    if (!sum.defined()) return g.sum(0);
    const kernels::Place place = place_of_kernels(g);
    if (place.on_device && sum.scalar_type() == computed_type(g) && g.is_contiguous() &&
        sum.is_contiguous()) {
      kernels::ColumnSums columns{.type = element_of(g), .rows = g.size(0), .columns = g.size(1)};
      const at::Tensor partial_sums = at::empty({columns.parts(), columns.columns}, sum.options());
      columns.matrix = g.data_ptr();
      columns.sums = sum.data_ptr();
      columns.partial_sums = partial_sums.data_ptr();
      kernels::add_column_sums(columns, place);
    } else {
      sum.add_(g.sum(0, /*keepdim=*/false, sum.scalar_type()));
    }
    return {};
  }
  // Undefined if it was added to the weight's gradient.
  static at::Tensor for_weight(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& g,
                               bool transposed) {
    const at::Tensor rows = as_rows(x);
    const at::Tensor left = (transposed ? g : rows).t();
    const at::Tensor& right = transposed ? rows : g;
    at::Tensor sum = accumulated_gradient(weight);
    if (!sum.defined()) return matrix_product(left, right);
    add_matrix_product(sum, left, right);
    return {};
  }
};

struct RowsOfTable : torch::autograd::Function<RowsOfTable> {
  static Variable forward(AutogradContext* context, const Variable& table, const Variable& ids) {
    context->save_for_backward({table, ids});
    return at::embedding(table, ids);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &table = saved[0], ids = saved[1];
    if (at::Tensor sum = accumulated_gradient(table); sum.defined()) {
      sum.index_add_(0, ids.reshape({-1}), as_rows(gradients[0]).to(sum.scalar_type()));
      return {Variable(), Variable()};
    }
    return {at::embedding_dense_backward(gradients[0], ids, table.size(0), -1, false), Variable()};
  }
};

}  // namespace

at::Tensor accumulated_gradient(const at::Tensor& weight) {
  if (!weight.is_leaf()) return {};
  const at::Tensor& gradient = weight.grad();
  if (!gradient.defined()) return {};
  const bool wider = has_16_bits(weight.scalar_type()) && gradient.scalar_type() == at::kFloat;
  return wider || gradient.scalar_type() == weight.scalar_type() ? gradient : at::Tensor();
}

at::Tensor product_by_outputs(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                              Communicator* tp) {
  return WeightProduct::apply(x, weight, defined(bias, weight), /*transposed=*/true, int64_t{0},
                              handle_of(tp));
}

at::Tensor product_by_inputs(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                             Communicator* tp) {
  return WeightProduct::apply(x, weight, defined(bias, weight), /*transposed=*/false, handle_of(tp),
                              int64_t{0});
}

at::Tensor rows_of_table(const at::Tensor& table, const at::Tensor& ids) {
  return RowsOfTable::apply(table, ids);
}

}  // namespace sailor
