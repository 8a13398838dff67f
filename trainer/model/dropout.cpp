#include "trainer/model/dropout.h"

#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <array>

#include "trainer/model/dropout_mask.h"

namespace sailor {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

at::Tensor dropped(const at::Tensor& x, const ElementRange& range, const DropoutPlace& place, double rate) {
  return x.device().is_cpu() ? dropped_by_loop(x, range, place, rate)
                             : dropped_by_operators(x, range, place, rate);
}

struct DropoutFunction : torch::autograd::Function<DropoutFunction> {
  static Variable forward(AutogradContext* context, const Variable& x, const ElementRange& range,
                          const DropoutPlace& place, double rate) {
    context->saved_data["place"] = std::vector<int64_t>{static_cast<int64_t>(place.seed),
                                                        place.step,
                                                        place.sequence,
                                                        place.layer,
                                                        place.site,
                                                        range.of_sequence,
                                                        range.first};
    context->saved_data["rate"] = rate;
    return dropped(x, range, place, rate);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const std::vector<int64_t> numbers = context->saved_data["place"].toIntVector();
    const DropoutPlace place{.seed = static_cast<uint64_t>(numbers[0]),
                             .step = numbers[1],
                             .sequence = numbers[2],
                             .layer = static_cast<int>(numbers[3]),
                             .site = static_cast<int>(numbers[4])};
    const double rate = context->saved_data["rate"].toDouble();
    return {dropped(gradients[0], {numbers[5], numbers[6]}, place, rate), Variable(), Variable(), Variable()};
  }
};

// The rounds of philox4x32() on tensors of 64-bit integers that hold 32-bit numbers.
struct Philox {
  static constexpr int64_t kLow = 0xffffffff;
  at::Tensor a, b, c, d;

  void round(int64_t key0, int64_t key1) {
    // Products wrap around as unsigned ones do; the shift brings sign bits along, which the mask takes away.
    const at::Tensor first = a * int64_t{0xd2511f53}, second = c * int64_t{0xcd9e8d57};
    const auto high = [](const at::Tensor& product) {
      return at::bitwise_and(at::bitwise_right_shift(product, 32), kLow);
    };
    a = at::bitwise_xor(at::bitwise_xor(high(second), b), key0);
    c = at::bitwise_xor(at::bitwise_xor(high(first), d), key1);
    b = at::bitwise_and(second, kLow);
    d = at::bitwise_and(first, kLow);
  }
};

}  // namespace

at::Tensor dropped_by_loop(const at::Tensor& input, const ElementRange& range, const DropoutPlace& first,
                           double rate) {
  const at::Tensor x = input.contiguous();
  at::Tensor y = at::empty_like(x);
  if (x.numel() == 0) return y;
  constexpr int64_t kPiece = 4096;  // numbers at a time: they stay in the nearest cache
  const int64_t size = range.of_sequence, last = range.first + x.numel();
  const int64_t pieces = (size + kPiece - 1) / kPiece;  // of a sequence
  const auto piece_of = [&](int64_t element) { return element / size * pieces + element % size / kPiece; };
  const uint32_t threshold = dropout_threshold(rate);
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "dropout", [&] {
    using Factor = at::opmath_type<scalar_t>;
    const auto scale = static_cast<Factor>(1 / (1 - rate));
    const scalar_t* in = x.data_ptr<scalar_t>();
    scalar_t* out = y.data_ptr<scalar_t>();
    at::parallel_for(piece_of(range.first), piece_of(last - 1) + 1, 4, [&](int64_t begin, int64_t end) {
      std::array<uint32_t, kPiece> numbers;
      for (int64_t piece = begin; piece < end; ++piece) {
        DropoutPlace place = first;
        place.sequence += piece / pieces;
        const int64_t offset = piece % pieces * kPiece, sequence = piece / pieces * size;
        dropout_numbers(place, offset / 4, (std::min(kPiece, size - offset) + 3) / 4, numbers.data());
        const int64_t from = std::max(range.first, sequence + offset),
                      to = std::min(last, sequence + std::min(size, offset + kPiece));
        for (int64_t i = from; i < to; ++i) {
          const Factor value = static_cast<Factor>(in[i - range.first]) * scale;
          const bool dropped = numbers[static_cast<std::size_t>(i - sequence - offset)] < threshold;
          out[i - range.first] = static_cast<scalar_t>(dropped ? Factor{0} : value);
        }
      }
    });
  });
  return y;
}

// Numbers come in blocks of four: those of a sequence that does not end with one have a rest.
at::Tensor dropped_by_operators(const at::Tensor& x, const ElementRange& range, const DropoutPlace& first,
                                double rate) {
  if (x.numel() == 0) return x;
  const int64_t size = range.of_sequence, blocks = (size + 3) / 4, last = range.first + x.numel() - 1;
  const auto block_of = [&](int64_t element) { return element / size * blocks + element % size / 4; };
  const at::TensorOptions integers = x.options().dtype(at::kLong);
  const int64_t first_block = block_of(range.first);
  const at::Tensor all = at::arange(first_block, block_of(last) + 1, integers);
  const at::Tensor sequence = at::div(all, blocks, "floor"), block = all - sequence * blocks;
  const int64_t tag = 4 * int64_t{first.layer} + first.site;
  Philox numbers{
      at::bitwise_and(block, Philox::kLow), at::bitwise_and(sequence + first.sequence, Philox::kLow),
      at::full({1}, static_cast<int64_t>(static_cast<uint32_t>(first.step)), integers).expand_as(all),
      at::bitwise_or(at::bitwise_and(at::bitwise_right_shift(block, 32) * 65536, Philox::kLow), tag)};
  auto key0 = static_cast<uint32_t>(first.seed), key1 = static_cast<uint32_t>(first.seed >> 32);
  for (int i = 0; i < 10; ++i, key0 += 0x9e3779b9, key1 += 0xbb67ae85) numbers.round(key0, key1);
  at::Tensor drawn = at::stack({numbers.a, numbers.b, numbers.c, numbers.d}, 1).view({-1});
  if (size % 4 == 0) {
    drawn = drawn.narrow(0, range.first - 4 * first_block, x.numel());
  } else {
    const at::Tensor element = at::arange(range.first, last + 1, integers);
    const at::Tensor rest = at::div(element, size, "floor") * (4 * blocks - size);
    drawn = drawn.index_select(0, element + rest - 4 * first_block);
  }
  const at::Tensor kept = drawn.ge(static_cast<int64_t>(dropout_threshold(rate))).view(x.sizes());
  // A product with 0 would keep what is not finite.
  return (x * (1 / (1 - rate))).masked_fill_(kept.logical_not(), 0.0);
}

at::Tensor Dropout::operator()(const at::Tensor& x, const Batch& batch, DropoutSite site,
                               const TensorParallel& tp) const {
  if (rate == 0 || !batch.step) return x;
  const int64_t hidden = x.size(-1);
  ElementRange range{.of_sequence = x.size(-2) * hidden};
  if (tp.splits_tokens()) range = {tp.split.length * hidden, static_cast<int64_t>(tp.share().first) * hidden};
  const DropoutPlace place{.seed = seed,
                           .step = *batch.step,
                           .sequence = batch.first_sequence,
                           .layer = layer,
                           .site = static_cast<int>(site)};
  return DropoutFunction::apply(x, range, place, rate);
}

}  // namespace sailor
