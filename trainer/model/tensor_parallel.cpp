#include "trainer/model/tensor_parallel.h"

#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "trainer/kernels/cross_entropy.h"
#include "trainer/model/element_types.h"
#include "trainer/model/kernel_arguments.h"
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

// Of any member of the TP group.
int64_t largest_share(const TensorParallel& tp) {
  return static_cast<int64_t>(block_of(tp.region().count, tp.group->size(), 0).count);
}

at::Tensor narrowed(const at::Tensor& of_tokens, const BlockRange& range) {
  return of_tokens.reshape({-1}).narrow(0, static_cast<int64_t>(range.first),
                                        static_cast<int64_t>(range.count));
}

// Collectives are for equal numbers of rows.
at::Tensor padded(const at::Tensor& rows, int64_t most) {
  if (rows.size(0) == most) return rows.contiguous();
  return at::constant_pad_nd(rows, {0, 0, 0, most - rows.size(0)});
}

at::Tensor sum_copy(const at::Tensor& x, const TensorParallel& tp) {
  if (tp.splits_tokens()) return tp.sum(x.reshape({-1, x.size(-1)}));
  return tp.sum(x.clone(at::MemoryFormat::Contiguous));
}

at::Tensor all_tokens(const at::Tensor& x, const TensorParallel& tp) {
  return tp.splits_tokens() ? tp.region_view(tp.all(x)) : x.view_as(x);
}

struct LeaveTensorParallel : torch::autograd::Function<LeaveTensorParallel> {
  static Variable forward(AutogradContext* context, const Variable& x, const TensorParallel& tp) {
    context->saved_data["tp"] = tp.packed();
    return sum_copy(x, tp);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto tp = TensorParallel::unpacked(context->saved_data["tp"].toIntVector());
    return {all_tokens(gradients[0], tp), Variable()};
  }
};

struct EnterTensorParallel : torch::autograd::Function<EnterTensorParallel> {
  static Variable forward(AutogradContext* context, const Variable& x, const TensorParallel& tp) {
    context->saved_data["tp"] = tp.packed();
    return all_tokens(x, tp);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto tp = TensorParallel::unpacked(context->saved_data["tp"].toIntVector());
    return {sum_copy(gradients[0], tp), Variable()};
  }
};

// With t the target's column: loss = log(sum_j exp(x_j - max)) - (x_t - max); d loss / d x = softmax -
// onehot(t). With log Z = log(sum_j exp(x_j - max)) + max, d z_loss (log Z)^2 / d x = 2 z_loss log Z softmax.
// The kernels of trainer/kernels/cross_entropy.h: the forward reads the logits, and the backward turns them
// into the gradient in place.
struct VocabularyCrossEntropy : torch::autograd::Function<VocabularyCrossEntropy> {
  static kernels::CrossEntropy arguments(const at::Tensor& logits, const at::Tensor& targets,
                                         int64_t vocabulary, Communicator* tp) {
    kernels::CrossEntropy loss;
    loss.type = element_of(logits);
    loss.rows = logits.size(0);
    loss.columns = logits.size(1);
    loss.first_column = alone(tp) ? 0 : loss.columns * tp->rank();
    loss.real = std::clamp<int64_t>(vocabulary - loss.first_column, 0, loss.columns);
    loss.logits = logits.data_ptr();
    loss.targets = targets.data_ptr<int64_t>();
    return loss;
  }

  static Variable forward(AutogradContext* context, const Variable& logits, const Variable& targets,
                          int64_t vocabulary, int64_t handle, double z_loss) {
    Communicator* tp = from_handle(handle);
    const at::Tensor scores = logits.detach().contiguous(), wanted = targets.contiguous();
    kernels::CrossEntropy loss = arguments(scores, wanted, vocabulary, tp);
    const at::TensorOptions computed = scores.options().dtype(computed_type(scores));
    at::Tensor largest = at::zeros({loss.rows}, computed);
    // Row 0: sum of exponentials; row 1: the target's score, where it is held. One all-reduce for both.
    at::Tensor sums = at::zeros({2, loss.rows}, computed);
    const at::Tensor sum = sums[0], score = sums[1];
    loss.largest = largest.data_ptr();
    loss.sum = sum.data_ptr();
    loss.score = score.data_ptr();
    kernels::cross_entropy_forward(loss, place_of_kernels(scores));
    if (!alone(tp)) {
      const at::Tensor mine = largest.clone();
      all_reduce(*tp, largest, ReduceOp::max);
      sums[0].mul_((mine - largest).exp_());
      all_reduce(*tp, sums);
    }

    const at::Tensor uncounted = wanted.lt(0);
    const at::Tensor log_sum = sum.log();
    const at::Tensor total = (log_sum - (score - largest)).masked_fill_(uncounted, 0.0).sum();
    context->save_for_backward({sum, largest, wanted, uncounted});
    context->saved_data["logits"] = scores;
    context->saved_data["vocabulary"] = vocabulary;
    context->saved_data["handle"] = handle;
    if (z_loss == 0) return total;
    const at::Tensor log_z = log_sum + largest;
    context->saved_data["slope"] = log_z * (2 * z_loss);
    return at::stack({total, log_z.square().masked_fill_(uncounted, 0.0).sum() * z_loss});
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor gradient = context->saved_data["logits"].toTensor();
    // Used up: a second backward through the same loss cannot be right.
    context->saved_data.erase("logits");
    const auto slope = context->saved_data.find("slope");
    const bool has_z_loss = slope != context->saved_data.end();
    const at::Tensor of_loss = has_z_loss ? gradients[0][0] : gradients[0];
    at::Tensor of_softmax = of_loss;
    if (has_z_loss) of_softmax = of_loss + gradients[0][1] * slope->second.toTensor();
    of_softmax = (of_softmax / saved[0]).masked_fill_(saved[3], 0.0);
    const at::Tensor of_target = of_loss.expand_as(saved[0]).masked_fill(saved[3], 0.0).contiguous();
    kernels::CrossEntropy loss = arguments(gradient, saved[2], context->saved_data["vocabulary"].toInt(),
                                           from_handle(context->saved_data["handle"].toInt()));
    loss.shift = saved[1].data_ptr();
    loss.of_softmax = of_softmax.data_ptr();
    loss.of_target = of_target.data_ptr();
    kernels::cross_entropy_backward(loss, place_of_kernels(gradient));
    return {gradient, Variable(), Variable(), Variable(), Variable()};
  }
};

}  // namespace

BlockRange token_share(int64_t tokens, const ReplicaShape& shape, int gpu) {
  const BlockRange of_copy = block_of(static_cast<std::size_t>(tokens), shape.copies(), shape.copy_of(gpu));
  const BlockRange mine = block_of(of_copy.count, shape.parts(), shape.part_of(gpu));
  return {of_copy.first + mine.first, mine.count};
}

BlockRange TensorParallel::region() const {
  const auto all = static_cast<std::size_t>(split.tokens());
  return splits_context() ? block_of(all, context->size(), context->rank()) : BlockRange{0, all};
}

BlockRange TensorParallel::share() const {
  const ReplicaShape shape{.tp = alone() ? 1 : group->size(), .cp = splits_context() ? context->size() : 1};
  const int tp_rank = alone() ? 0 : group->rank(), cp_rank = splits_context() ? context->rank() : 0;
  return token_share(split.tokens(), shape, cp_rank * shape.tp + tp_rank);
}

at::Tensor TensorParallel::in_region(const at::Tensor& of_tokens) const {
  return splits_context() ? narrowed(of_tokens, region()) : of_tokens;
}

at::Tensor TensorParallel::own(const at::Tensor& of_tokens) const {
  return splits_tokens() ? narrowed(of_tokens, share()) : of_tokens;
}

at::Tensor TensorParallel::region_view(const at::Tensor& rows) const {
  return splits_context() ? rows : rows.view({split.sequences, split.length, rows.size(-1)});
}

at::Tensor TensorParallel::sum(at::Tensor partial_rows) const {
  if (alone()) return partial_rows;
  if (!splits_tokens()) {
    all_reduce(*group, partial_rows);
    return partial_rows;
  }
  const int64_t most = largest_share(*this);
  partial_rows = padded(partial_rows, most * group->size());
  const at::Tensor sums = at::empty({most, partial_rows.size(1)}, partial_rows.options());
  group->reduce_scatter(partial_rows.data_ptr(), sums.data_ptr(), static_cast<std::size_t>(sums.numel()),
                        element_type(sums.scalar_type()), ReduceOp::sum, stream_of(sums));
  return sums.narrow(0, 0, static_cast<int64_t>(share().count));
}

at::Tensor TensorParallel::all(const at::Tensor& rows) const {
  if (!splits_tokens() || alone()) return rows;
  const int64_t most = largest_share(*this);
  const at::Tensor mine = padded(rows, most);
  const at::Tensor gathered = at::empty({most * group->size(), rows.size(1)}, rows.options());
  group->all_gather(mine.data_ptr(), gathered.data_ptr(), static_cast<std::size_t>(mine.numel()),
                    element_type(mine.scalar_type()), stream_of(mine));
  return gathered.narrow(0, 0, static_cast<int64_t>(region().count));
}

std::vector<int64_t> TensorParallel::packed() const {
  return {to_handle(group), split.sequences, split.length, to_handle(context), ring};
}

TensorParallel TensorParallel::unpacked(const std::vector<int64_t>& packed) {
  return {
      from_handle(packed[0]), {packed[1], packed[2]}, from_handle(packed[3]), static_cast<int>(packed[4])};
}

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

at::Tensor leave_tensor_parallel(const at::Tensor& x, const TensorParallel& tp) {
  return tp.alone() ? x : LeaveTensorParallel::apply(x, tp);
}

at::Tensor enter_tensor_parallel(const at::Tensor& x, const TensorParallel& tp) {
  return tp.alone() ? x : EnterTensorParallel::apply(x, tp);
}

at::Tensor vocabulary_embedding(const at::Tensor& table, const at::Tensor& ids, const TensorParallel& tp) {
  const at::Tensor wanted = tp.in_region(ids);
  if (tp.alone()) return rows_of_table(table, wanted);
  const int64_t rows = table.size(0);
  const at::Tensor local = wanted - rows * tp.group->rank();
  const at::Tensor elsewhere = local.lt(0).logical_or(local.ge(rows));
  const at::Tensor found = rows_of_table(table, local.clamp(0, rows - 1));
  return leave_tensor_parallel(found.masked_fill(elsewhere.unsqueeze(-1), 0.0), tp);
}

at::Tensor vocabulary_cross_entropy(const at::Tensor& logits, const at::Tensor& targets, int64_t vocabulary,
                                    Communicator* tp, double z_loss) {
  return VocabularyCrossEntropy::apply(logits, targets, vocabulary, to_handle(tp), z_loss);
}

}  // namespace sailor
