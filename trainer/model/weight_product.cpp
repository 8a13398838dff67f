#include "trainer/model/weight_product.h"

#include <torch/csrc/autograd/custom_function.h>

#include <vector>

#include "trainer/kernels/column_sums.h"
#include "trainer/model/element_types.h"
#include "trainer/model/kernel_arguments.h"
#include "trainer/model/matrix_product.h"

namespace sailor {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

at::Tensor as_rows(const at::Tensor& x) {
  return x.reshape({-1, x.size(-1)});
}
at::Tensor like_rows_of(const at::Tensor& rows, at::IntArrayRef x) {
  std::vector<int64_t> sizes = x.vec();
  sizes.back() = rows.size(1);
  return rows.view(sizes);
}

// Autograd's functions want defined arguments: no bias is one without elements.
at::Tensor defined(const at::Tensor& bias, const at::Tensor& weight) {
  return bias.defined() ? bias : at::empty({0}, weight.options());
}

// y = x M + b with M = `weight`, or its transpose. For the gradient g of y: x gets g M^T, M gets x^T g, and b
// the sum of g's rows. Of a frozen weight x is not kept, and has no gradient computed; nor has a frozen bias.
// The transposed product enters a tensor-parallel region of `tp`, the other leaves it.
struct WeightProduct : torch::autograd::Function<WeightProduct> {
  static Variable forward(AutogradContext* context, const Variable& x, const Variable& weight,
                          const Variable& bias, bool transposed, const TensorParallel& tp,
                          const RecomputedPtr& again, const LaterGradientsPtr& later) {
    const bool has_bias = bias.numel() > 0;
    context->save_for_backward({weight.requires_grad() && !again ? x : Variable(), weight, bias});
    if (weight.requires_grad() && again) context->saved_data["again"] = packed(again);
    if (weight.requires_grad() && weight.is_leaf() && later) context->saved_data["later"] = packed(later);
    context->saved_data["for_bias"] = has_bias && bias.requires_grad();
    context->saved_data["transposed"] = transposed;
    context->saved_data["tp"] = tp.packed();
    context->saved_data["sizes"] = x.sizes().vec();
    if (transposed)
      return in_region(matrix_product(tp.all(as_rows(x)), weight.t(), has_bias ? bias : at::Tensor()), x, tp);
    // The bias counts once, however many ranks there are.
    const bool with_bias = has_bias && tp.alone();
    const at::Tensor rows = tp.sum(matrix_product(as_rows(x), weight, with_bias ? bias : at::Tensor()));
    if (has_bias && !with_bias) rows.add_(bias);
    return tp.splits_tokens() ? rows : like_rows_of(rows, x.sizes());
  }
  // Of rows that belong to those of `x`, which is outside.
  static at::Tensor in_region(const at::Tensor& rows, const at::Tensor& x, const TensorParallel& tp) {
    return tp.splits_tokens() ? tp.region_view(rows) : like_rows_of(rows, x.sizes());
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& weight = saved[1];
    const bool transposed = context->saved_data["transposed"].toBool();
    const auto tp = TensorParallel::unpacked(context->saved_data["tp"].toIntVector());
    const at::Tensor own = as_rows(gradients[0]);
    const at::Tensor g = transposed ? own : tp.all(own);

    at::Tensor for_x = matrix_product(g, transposed ? weight : weight.t());
    if (transposed) for_x = tp.sum(for_x);

    at::Tensor for_bias, of_weight;
    if (context->saved_data["for_bias"].toBool()) for_bias = bias_gradient(saved[2], own);
    at::Tensor x = saved[0];
    if (const auto again = context->saved_data.find("again"); again != context->saved_data.end())
      x = unpacked(again->second).take();
    if (const auto later = context->saved_data.find("later"); later != context->saved_data.end()) {
      unpacked_later(later->second).add([x, weight, g, transposed, tp] {
        add_to_gradient(weight, for_weight(in_all(x, transposed, tp), weight, g, transposed));
      });
    } else if (x.defined()) {
      of_weight = for_weight(in_all(x, transposed, tp), weight, g, transposed);
    }
    return {for_x.view(context->saved_data["sizes"].toIntVector()),
            of_weight,
            for_bias,
            Variable(),
            Variable(),
            Variable(),
            Variable()};
  }
  // Rows of all tokens.
  static at::Tensor in_all(const at::Tensor& x, bool transposed, const TensorParallel& tp) {
    return transposed ? tp.all(as_rows(x)) : as_rows(x);
  }
  // As autograd does it; not if it is undefined.
  static void add_to_gradient(const at::Tensor& weight, const at::Tensor& more) {
    if (!more.defined()) return;
    at::Tensor& gradient = weight.mutable_grad();
    if (gradient.defined())
      gradient.add_(more);
    else
      gradient = more;
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
  static at::Tensor for_weight(const at::Tensor& rows, const at::Tensor& weight, const at::Tensor& g,
                               bool transposed) {
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

at::Tensor product_by_outputs(const OperatorInput& x, const at::Tensor& weight, const at::Tensor& bias,
                              const TensorParallel& tp, const LaterGradientsPtr& later) {
  return WeightProduct::apply(x.value, weight, defined(bias, weight), /*transposed=*/true, tp, x.again,
                              later);
}

at::Tensor product_by_inputs(const OperatorInput& x, const at::Tensor& weight, const at::Tensor& bias,
                             const TensorParallel& tp, const LaterGradientsPtr& later) {
  return WeightProduct::apply(x.value, weight, defined(bias, weight), /*transposed=*/false, tp, x.again,
                              later);
}

at::Tensor rows_of_table(const at::Tensor& table, const at::Tensor& ids) {
  return RowsOfTable::apply(table, ids);
}

}  // namespace sailor
