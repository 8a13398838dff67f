#include "trainer/model/tensor_parallel.h"

#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <limits>

#include "trainer/model/element_types.h"
#include "trainer/model/torch_device.h"
#include "trainer/model/weight_product.h"

namespace sailor {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

bool alone(const Communicator* tp) {
  return tp == nullptr || tp->size() == 1;
}

// Autograd keeps plain values; the communicator outlives every graph that uses it.
int64_t to_handle(Communicator* comm) {
  return reinterpret_cast<int64_t>(comm);
}
Communicator* from_handle(int64_t handle) {
  return reinterpret_cast<Communicator*>(handle);
}

at::Tensor reduced_copy(const at::Tensor& x, Communicator* tp) {
  at::Tensor sum = x.clone(at::MemoryFormat::Contiguous);
  all_reduce(*tp, sum);
  return sum;
}

// Calls work(first row, rows) for blocks of rows that fit into a core's cache, so that what is done to a
// block by several operators reads and writes memory once. On a GPU the more rows the better.
template <class RowWork>
void for_row_blocks(const at::Tensor& matrix, const RowWork& work) {
  if (!matrix.device().is_cpu()) return work(0, matrix.size(0));
  constexpr int64_t kBlockBytes = 512 << 10;
  const int64_t rows = std::max<int64_t>(1, kBlockBytes / (matrix.size(1) * matrix.element_size()));
  at::parallel_for(0, matrix.size(0), rows, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; row += rows) work(row, std::min(rows, end - row));
  });
}

struct LeaveTensorParallel : torch::autograd::Function<LeaveTensorParallel> {
  static Variable forward(AutogradContext*, const Variable& x, int64_t tp) {
    return reduced_copy(x, from_handle(tp));
  }
  static variable_list backward(AutogradContext*, variable_list gradients) {
    return {gradients[0], Variable()};
  }
};

struct EnterTensorParallel : torch::autograd::Function<EnterTensorParallel> {
  static Variable forward(AutogradContext* context, const Variable& x, int64_t tp) {
    context->saved_data["tp"] = tp;
    return x.view_as(x);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    return {reduced_copy(gradients[0], from_handle(context->saved_data["tp"].toInt())), Variable()};
  }
};

// With t the target's column: loss = log(sum_j exp(x_j - max)) - (x_t - max); d loss / d x = softmax -
// onehot(t). With log Z = log(sum_j exp(x_j - max)) + max, d z_loss (log Z)^2 / d x = 2 z_loss log Z softmax.
// The exponentials take the place of the logits, and the backward turns them into the gradient in
// place. Of 16-bit logits both are computed in 32 bit.
struct VocabularyCrossEntropy : torch::autograd::Function<VocabularyCrossEntropy> {
  static Variable forward(AutogradContext* context, const Variable& logits, const Variable& targets,
                          int64_t vocabulary, int64_t handle, double z_loss) {
    Communicator* tp = from_handle(handle);
    const int64_t columns = logits.size(1);
    const int64_t first = alone(tp) ? 0 : columns * tp->rank();
    const int64_t real = std::clamp<int64_t>(vocabulary - first, 0, columns);
    const at::ScalarType type = logits.scalar_type();
    at::Tensor scores = has_16_bits(type) ? logits.detach().to(at::kFloat) : logits.detach();
    if (real < columns)
      scores.narrow(1, real, columns - real).fill_(-std::numeric_limits<double>::infinity());

    const at::Tensor local = targets - first;
    const at::Tensor here = local.ge(0).logical_and(local.lt(real));
    const at::Tensor column = local.clamp(0, columns - 1).unsqueeze(1);
    at::Tensor largest = at::empty({scores.size(0)}, scores.options());
    // Row 0: sum of exponentials; row 1: the target's score, where it is held. One all-reduce for both.
    at::Tensor sums = at::empty({2, scores.size(0)}, scores.options());
    const auto find_largest = [&](int64_t row, int64_t rows) {
      largest.narrow(0, row, rows).copy_(scores.narrow(0, row, rows).amax(1));
    };
    const auto exponentiate = [&](int64_t row, int64_t rows) {
      at::Tensor block = scores.narrow(0, row, rows);
      block.sub_(largest.narrow(0, row, rows).unsqueeze(1));
      sums.narrow(1, row, rows)[1].copy_(block.gather(1, column.narrow(0, row, rows)).squeeze(1));
      sums.narrow(1, row, rows)[0].copy_(block.exp_().sum(1));
    };
    if (alone(tp)) {
      for_row_blocks(scores, [&](int64_t row, int64_t rows) {
        find_largest(row, rows);
        exponentiate(row, rows);
      });
    } else {
      for_row_blocks(scores, find_largest);
      all_reduce(*tp, largest, ReduceOp::max);
      for_row_blocks(scores, exponentiate);
    }
    sums[1].masked_fill_(here.logical_not(), 0.0);
    if (!alone(tp)) all_reduce(*tp, sums);

    const at::Tensor uncounted = targets.lt(0);
    const at::Tensor log_sum = sums[0].log();
    const at::Tensor loss = (log_sum - sums[1]).masked_fill_(uncounted, 0.0).sum();
    context->save_for_backward({sums[0], column, here, uncounted});
    context->saved_data["exponentials"] = scores;
    context->saved_data["type"] = static_cast<int64_t>(type);
    if (z_loss == 0) return loss;
    const at::Tensor log_z = log_sum.add_(largest);
    context->saved_data["slope"] = log_z * (2 * z_loss);
    return at::stack({loss, log_z.square().masked_fill_(uncounted, 0.0).sum() * z_loss});
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    at::Tensor gradient = context->saved_data["exponentials"].toTensor();
    context->saved_data.erase(
        "exponentials");  // used up: a second backward through the same loss cannot be right
    const auto slope = context->saved_data.find("slope");
    const bool has_z_loss = slope != context->saved_data.end();
    const at::Tensor of_loss = has_z_loss ? gradients[0][0] : gradients[0];
    at::Tensor of_softmax = of_loss;
    if (has_z_loss) of_softmax = of_loss + gradients[0][1] * slope->second.toTensor();
    gradient.mul_((of_softmax / saved[0]).masked_fill_(saved[3], 0.0).unsqueeze(1));
    gradient.scatter_add_(1, saved[1], (saved[2].to(gradient.scalar_type()) * -of_loss).unsqueeze(1));
    const auto type = static_cast<at::ScalarType>(context->saved_data["type"].toInt());
    return {gradient.to(type), Variable(), Variable(), Variable(), Variable()};
  }
};

}  // namespace

void all_reduce(Communicator& comm, at::Tensor& tensor, ReduceOp op) {
  TORCH_INTERNAL_ASSERT(tensor.is_contiguous());
  comm.all_reduce(tensor.data_ptr(), static_cast<std::size_t>(tensor.numel()),
                  element_type(tensor.scalar_type()), op, stream_of(tensor));
}

void broadcast(Communicator& comm, at::Tensor& tensor, int root) {
  TORCH_INTERNAL_ASSERT(tensor.is_contiguous());
  comm.broadcast(tensor.data_ptr(), static_cast<std::size_t>(tensor.numel()),
                 element_type(tensor.scalar_type()), root, stream_of(tensor));
}

at::Tensor leave_tensor_parallel(const at::Tensor& x, Communicator* tp) {
  return alone(tp) ? x : LeaveTensorParallel::apply(x, to_handle(tp));
}

at::Tensor enter_tensor_parallel(const at::Tensor& x, Communicator* tp) {
  return alone(tp) ? x : EnterTensorParallel::apply(x, to_handle(tp));
}

at::Tensor vocabulary_embedding(const at::Tensor& table, const at::Tensor& ids, Communicator* tp) {
  if (alone(tp)) return rows_of_table(table, ids);
  const int64_t rows = table.size(0);
  const at::Tensor local = ids - rows * tp->rank();
  const at::Tensor elsewhere = local.lt(0).logical_or(local.ge(rows));
  const at::Tensor found = rows_of_table(table, local.clamp(0, rows - 1));
  return leave_tensor_parallel(found.masked_fill(elsewhere.unsqueeze(-1), 0.0), tp);
}

at::Tensor vocabulary_cross_entropy(const at::Tensor& logits, const at::Tensor& targets, int64_t vocabulary,
                                    Communicator* tp, double z_loss) {
  return VocabularyCrossEntropy::apply(logits, targets, vocabulary, to_handle(tp), z_loss);
}

}  // namespace sailor
