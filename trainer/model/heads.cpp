#include "trainer/model/heads.h"

#include <torch/csrc/autograd/custom_function.h>

#include "trainer/kernels/heads.h"
#include "trainer/kernels/traffic.h"
#include "trainer/model/kernel_arguments.h"

namespace sailor {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

// Autograd's functions take tensors: no table is one without elements.
struct RotaryRows {
  at::Tensor cosine, sine;

  RotaryRows(const RotaryTable& table, int64_t first, int64_t tokens, const at::TensorOptions& options)
      : cosine(table.is_there() ? table.cosine.narrow(0, first, tokens) : at::empty({0}, options)),
        sine(table.is_there() ? table.sine.narrow(0, first, tokens) : cosine) {}
};

void turn_by(kernels::HeadMove& move, const at::Tensor& cosine, const at::Tensor& sine, bool interleaved) {
  if (cosine.numel() == 0) return;
  TORCH_CHECK(cosine.scalar_type() == sine.scalar_type() && cosine.is_contiguous() && sine.is_contiguous(),
              "rotary tables");
  move.pairs = cosine.size(1);
  move.interleaved = interleaved;
  move.cosine = cosine.data_ptr();
  move.sine = sine.data_ptr();
}

// Of [batch, heads, tokens, size] with contiguous rows.
kernels::HeadRows rows_of(const at::Tensor& x) {
  return {x.data_ptr(), x.stride(0), x.stride(1), x.stride(2)};
}
// The heads of [batch, tokens, heads * size].
kernels::HeadRows packed_rows_of(const at::Tensor& x, int64_t size) {
  return {x.data_ptr(), x.stride(0), size, x.stride(1)};
}
// Attention kernels of devices write whole rows.
at::Tensor with_whole_rows(const at::Tensor& x) {
  const kernels::RecordedKernel kernel("rows", 0, 0);
  return x.stride(3) == 1 || x.size(3) == 1 ? x : x.contiguous();
}

kernels::HeadMove split_move(const at::Tensor& packed, int64_t heads, int64_t kv_heads) {
  kernels::HeadMove move;
  move.type = element_of(packed);
  move.has_values = true;
  move.batch = packed.size(0);
  move.tokens = packed.size(1);
  move.groups = kv_heads;
  move.queries = heads / kv_heads;
  move.size = packed.size(2) / (heads + 2 * kv_heads);
  move.packed = packed_rows_of(packed, move.size);
  return move;
}

// Attention kernels of devices read rows wherever they are.
variable_list parts_of(const at::Tensor& qkv, int64_t heads) {
  const at::Tensor parts = qkv.detach().view({qkv.size(0), qkv.size(1), heads, 3, -1}).transpose(1, 2);
  return {parts.select(3, 0), parts.select(3, 1), parts.select(3, 2)};
}

struct SplitHeads : torch::autograd::Function<SplitHeads> {
  static variable_list forward(AutogradContext* context, const Variable& input, const Variable& cosine,
                               const Variable& sine, int64_t heads, int64_t kv_heads, bool interleaved) {
    context->save_for_backward({cosine, sine});
    context->saved_data["interleaved"] = interleaved;
    const at::Tensor qkv = input.contiguous();
    kernels::HeadMove move = split_move(qkv, heads, kv_heads);
    const bool on_device = place_of_kernels(qkv).on_device;
    if (on_device && heads == kv_heads && cosine.numel() == 0) return parts_of(qkv, heads);
    const auto room = [&](int64_t count) {
      // Attention kernels of devices write in the order of what they read, and merge_heads() wants it token
      // by token.
      return on_device ? at::empty({move.batch, move.tokens, count, move.size}, qkv.options()).transpose(1, 2)
                       : at::empty({move.batch, count, move.tokens, move.size}, qkv.options());
    };
    const at::Tensor query = room(heads), key = room(kv_heads), value = room(kv_heads);
    move.query = rows_of(query);
    move.key = rows_of(key);
    move.value = rows_of(value);
    turn_by(move, cosine, sine, interleaved);
    kernels::move_heads(move, place_of_kernels(qkv));
    return {query, key, value};
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list tables = context->get_saved_variables();
    const at::Tensor query = with_whole_rows(gradients[0]), key = with_whole_rows(gradients[1]),
                     value = with_whole_rows(gradients[2]);
    const int64_t heads = query.size(1), kv_heads = key.size(1);
    const at::Tensor packed =
        at::empty({query.size(0), query.size(2), (heads + 2 * kv_heads) * query.size(3)}, query.options());
    kernels::HeadMove move = split_move(packed, heads, kv_heads);
    move.to_packed = move.backwards = true;
    move.query = rows_of(query);
    move.key = rows_of(key);
    move.value = rows_of(value);
    turn_by(move, tables[0], tables[1], context->saved_data["interleaved"].toBool());
    kernels::move_heads(move, place_of_kernels(packed));
    return {packed, Variable(), Variable(), Variable(), Variable(), Variable()};
  }
};

struct TurnHeads : torch::autograd::Function<TurnHeads> {
  static at::Tensor turned(const at::Tensor& input, const at::Tensor& cosine, const at::Tensor& sine,
                           bool interleaved, bool backwards) {
    const at::Tensor x = with_whole_rows(input);
    const at::Tensor y = at::empty(x.sizes(), x.options());
    kernels::HeadMove move;
    move.type = element_of(x);
    move.batch = x.size(0);
    move.tokens = x.size(2);
    move.groups = x.size(1);
    move.queries = 1;
    move.size = x.size(3);
    move.packed = rows_of(x);
    move.query = rows_of(y);
    move.backwards = backwards;
    turn_by(move, cosine, sine, interleaved);
    kernels::move_heads(move, place_of_kernels(x));
    return y;
  }
  static Variable forward(AutogradContext* context, const Variable& x, const Variable& cosine,
                          const Variable& sine, bool interleaved) {
    context->save_for_backward({cosine, sine});
    context->saved_data["interleaved"] = interleaved;
    return turned(x, cosine, sine, interleaved, /*backwards=*/false);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list tables = context->get_saved_variables();
    return {turned(gradients[0], tables[0], tables[1], context->saved_data["interleaved"].toBool(),
                   /*backwards=*/true),
            Variable(), Variable(), Variable()};
  }
};

}  // namespace

Heads split_heads(const at::Tensor& qkv, int64_t heads, int64_t kv_heads, const RotaryTable& table,
                  int64_t first) {
  const RotaryRows rows(table, first, qkv.size(1), qkv.options());
  const variable_list parts =
      SplitHeads::apply(qkv, rows.cosine, rows.sine, heads, kv_heads, table.interleaved);
  return {parts[0], parts[1], parts[2]};
}

at::Tensor turned_heads(const at::Tensor& x, const RotaryTable& table, int64_t first) {
  const RotaryRows rows(table, first, x.size(2), x.options());
  return TurnHeads::apply(x, rows.cosine, rows.sine, table.interleaved);
}

}  // namespace sailor
