#include "trainer/model/context_parallel.h"

#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <vector>

#include "trainer/model/element_types.h"
#include "trainer/model/torch_device.h"

namespace sailor {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

int head_parts(const TensorParallel& tp) {
  return tp.context->size() / tp.ring;
}

RingTokens::Run tokens_of(const TensorParallel& tp, int member) {
  const BlockRange range = block_of(static_cast<std::size_t>(tp.split.tokens()), tp.context->size(), member);
  return {static_cast<int64_t>(range.first), static_cast<int64_t>(range.count)};
}

// The runs of tokens, numbered through the microbatch, that `member` has between attentions and rank `rank`
// of a ring in them, in ascending order.
std::vector<RingTokens::Run> common_runs(const TensorParallel& tp, int member, int rank) {
  const RingTokens::Run outside = tokens_of(tp, member);
  const RingTokens inside(tp.split.length, tp.ring, rank);
  std::vector<RingTokens::Run> runs;
  for (int64_t sequence = 0; sequence < tp.split.sequences; ++sequence) {
    for (const RingTokens::Run& run : {inside.front, inside.back}) {
      const int64_t start = sequence * tp.split.length + run.first;
      const int64_t first = std::max(outside.first, start), end = std::min(outside.end(), start + run.count);
      if (first >= end) continue;
      if (!runs.empty() && runs.back().end() == first)
        runs.back().count += end - first;
      else
        runs.push_back({first, end - first});
    }
  }
  return runs;
}

int64_t count_of(const std::vector<RingTokens::Run>& runs) {
  int64_t count = 0;
  for (const RingTokens::Run& run : runs) count += run.count;
  return count;
}

// Of `x`, whose rows are the tokens from `first` on.
at::Tensor rows_of(const at::Tensor& x, int64_t first, const std::vector<RingTokens::Run>& runs) {
  if (runs.size() == 1) return x.narrow(0, runs[0].first - first, runs[0].count);
  std::vector<at::Tensor> parts{x.narrow(0, 0, 0)};
  for (const RingTokens::Run& run : runs) parts.push_back(x.narrow(0, run.first - first, run.count));
  return at::cat(parts);
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

// The rows of what a rank has in attention come from the members in ascending order.
std::vector<at::Tensor> by_member(const at::Tensor& all, const TensorParallel& tp) {
  std::vector<at::Tensor> parts;
  int64_t next = 0;
  for (int member = 0; member < tp.context->size(); ++member) {
    const int64_t count = count_of(common_runs(tp, member, ring_rank(tp)));
    parts.push_back(all.narrow(0, next, count));
    next += count;
  }
  return parts;
}

// [tokens of the region, columns] -> [tokens in attention, columns / parts of the heads].
at::Tensor gathered(const at::Tensor& x, const TensorParallel& tp) {
  const int64_t parts = head_parts(tp), columns = x.size(1) / parts,
                first = tokens_of(tp, tp.context->rank()).first;
  const int64_t tokens = tp.split.sequences * RingTokens(tp.split.length, tp.ring, ring_rank(tp)).count();
  std::vector<at::Tensor> out;
  for (int rank = 0; rank < tp.ring; ++rank) {
    const at::Tensor rows = rows_of(x, first, common_runs(tp, tp.context->rank(), rank));
    const at::Tensor blocks = rows.view({rows.size(0), parts, columns}).transpose(0, 1).contiguous();
    for (int64_t part = 0; part < parts; ++part) out.push_back(blocks[part]);
  }
  at::Tensor all = at::empty({tokens, columns}, x.options());
  exchange(*tp.context, out, by_member(all, tp));
  return all;
}

// [tokens in attention, columns / parts of the heads] -> [tokens of the region, columns].
at::Tensor scattered(const at::Tensor& all, const TensorParallel& tp) {
  const int64_t parts = head_parts(tp), columns = all.size(1);
  const RingTokens::Run region = tokens_of(tp, tp.context->rank());
  std::vector<std::vector<RingTokens::Run>> runs;
  std::vector<at::Tensor> blocks, in;
  for (int rank = 0; rank < tp.ring; ++rank) {
    runs.push_back(common_runs(tp, tp.context->rank(), rank));
    blocks.push_back(at::empty({parts, count_of(runs.back()), columns}, all.options()));
    for (int64_t part = 0; part < parts; ++part) in.push_back(blocks.back()[part]);
  }
  exchange(*tp.context, by_member(all, tp), in);
  if (tp.ring == 1) return blocks[0].transpose(0, 1).reshape({region.count, parts * columns});
  at::Tensor rows = at::empty({region.count, parts * columns}, all.options());
  for (std::size_t rank = 0; rank < blocks.size(); ++rank) {
    int64_t next = 0;
    for (const RingTokens::Run& run : runs[rank]) {
      rows.narrow(0, run.first - region.first, run.count)
          .view({run.count, parts, columns})
          .copy_(blocks[rank].narrow(1, next, run.count).transpose(0, 1));
      next += run.count;
    }
  }
  return rows;
}

at::Tensor as_rows(const at::Tensor& x) {
  return x.reshape({-1, x.size(-1)}).contiguous();
}
at::Tensor in_sequences(const at::Tensor& rows, const TensorParallel& tp) {
  return rows.view({tp.split.sequences, rows.size(0) / tp.split.sequences, rows.size(1)});
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

RingTokens::RingTokens(int64_t length, int ring, int rank) {
  const auto run = [&](int number) {
    const BlockRange range = block_of(static_cast<std::size_t>(length), 2 * ring, number);
    return Run{static_cast<int64_t>(range.first), static_cast<int64_t>(range.count)};
  };
  front = run(rank);
  back = run(2 * ring - 1 - rank);
}

int ring_rank(const TensorParallel& tp) {
  return tp.context->rank() / head_parts(tp);
}

int ring_member(const TensorParallel& tp, int rank) {
  return rank * head_parts(tp) + tp.context->rank() % head_parts(tp);
}

at::Tensor gather_tokens(const at::Tensor& x, const TensorParallel& tp) {
  return tp.splits_context() ? GatherTokens::apply(x, tp) : x;
}

at::Tensor scatter_tokens(const at::Tensor& x, const TensorParallel& tp) {
  return tp.splits_context() ? ScatterTokens::apply(x, tp) : x;
}

}  // namespace sailor
