#include "trainer/model/context_parallel.h"

#include <torch/csrc/autograd/custom_function.h>

#include <vector>

#include "trainer/model/element_types.h"
#include "trainer/model/torch_device.h"

namespace sailor {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

BlockRange tokens_of(const TensorParallel& tp, int member) {
  return block_of(static_cast<std::size_t>(tp.split.tokens()), tp.context->size(), member);
}

at::Tensor rows_of(const at::Tensor& all, const BlockRange& range) {
  return all.narrow(0, static_cast<int64_t>(range.first), static_cast<int64_t>(range.count));
}

// Sends to each other member one of `out`, and receives one of `in` from it: contiguous tensors, by member.
void exchange(Communicator& group, const std::vector<at::Tensor>& out, const std::vector<at::Tensor>& in) {
  std::vector<Transfer> transfers;
  const auto add = [&](Transfer::Kind kind, const at::Tensor& tensor, int member) {
    if (tensor.numel() > 0)
      transfers.push_back({kind, tensor.data_ptr(), static_cast<std::size_t>(tensor.numel()),
                           element_type(tensor.scalar_type()), member});
  };
  for (int member = 0; member < group.size(); ++member) {
    if (member == group.rank()) continue;
    add(Transfer::Kind::send, out[static_cast<std::size_t>(member)], member);
    add(Transfer::Kind::recv, in[static_cast<std::size_t>(member)], member);
  }
  const auto own = static_cast<std::size_t>(group.rank());
  const Stream stream = stream_of(in[own]);
  const std::unique_ptr<Work> work = transfers.empty() ? nullptr : group.exchange(transfers, stream);
  in[own].copy_(out[own]);
  if (work) work->wait_on(stream);
}

// [tokens of the region, columns] -> [all tokens, columns / members].
at::Tensor gathered(const at::Tensor& x, const TensorParallel& tp) {
  const int64_t members = tp.context->size(), columns = x.size(1) / members;
  const at::Tensor parts = x.view({x.size(0), members, columns}).transpose(0, 1).contiguous();
  const at::Tensor all = at::empty({tp.split.tokens(), columns}, x.options());
  std::vector<at::Tensor> out, in;
  for (int member = 0; member < tp.context->size(); ++member) {
    out.push_back(parts[member]);
    in.push_back(rows_of(all, tokens_of(tp, member)));
  }
  exchange(*tp.context, out, in);
  return all;
}

// [all tokens, columns / members] -> [tokens of the region, columns].
at::Tensor scattered(const at::Tensor& all, const TensorParallel& tp) {
  const int64_t members = tp.context->size(), columns = all.size(1);
  const auto tokens = static_cast<int64_t>(tp.region().count);
  const at::Tensor parts = at::empty({members, tokens, columns}, all.options());
  std::vector<at::Tensor> out, in;
  for (int member = 0; member < tp.context->size(); ++member) {
    out.push_back(rows_of(all, tokens_of(tp, member)));
    in.push_back(parts[member]);
  }
  exchange(*tp.context, out, in);
  return parts.transpose(0, 1).reshape({tokens, members * columns});
}

at::Tensor as_rows(const at::Tensor& x) {
  return x.reshape({-1, x.size(-1)}).contiguous();
}
at::Tensor in_sequences(const at::Tensor& rows, const TensorParallel& tp) {
  return rows.view({tp.split.sequences, tp.split.length, rows.size(1)});
}

struct GatherTokens : torch::autograd::Function<GatherTokens> {
  static Variable forward(AutogradContext* context, const Variable& x, const TensorParallel& tp) {
    context->saved_data["tp"] = tp.packed();
    return in_sequences(gathered(as_rows(x), tp), tp);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto tp = TensorParallel::unpacked(context->saved_data["tp"].toIntVector());
    return {scattered(as_rows(gradients[0]), tp), Variable()};
  }
};

struct ScatterTokens : torch::autograd::Function<ScatterTokens> {
  static Variable forward(AutogradContext* context, const Variable& x, const TensorParallel& tp) {
    context->saved_data["tp"] = tp.packed();
    return scattered(as_rows(x), tp);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto tp = TensorParallel::unpacked(context->saved_data["tp"].toIntVector());
    return {in_sequences(gathered(as_rows(gradients[0]), tp), tp), Variable()};
  }
};

}  // namespace

at::Tensor gather_tokens(const at::Tensor& x, const TensorParallel& tp) {
  return tp.splits_context() ? GatherTokens::apply(x, tp) : x;
}

at::Tensor scatter_tokens(const at::Tensor& x, const TensorParallel& tp) {
  return tp.splits_context() ? ScatterTokens::apply(x, tp) : x;
}

}  // namespace sailor
