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

at::Tensor dropped(const at::Tensor& x, const DropoutPlace& first, double rate) {
  return x.device().is_cpu() ? dropped_by_loop(x, first, rate) : dropped_by_operators(x, first, rate);
}

struct DropoutFunction : torch::autograd::Function<DropoutFunction> {
  static Variable forward(AutogradContext* context, const Variable& x, int64_t seed, int64_t step,
                          int64_t sequence, int64_t layer, int64_t site, double rate) {
    context->saved_data["place"] = std::vector<int64_t>{seed, step, sequence, layer, site};
    context->saved_data["rate"] = rate;
    return dropped(x, place_of({seed, step, sequence, layer, site}), rate);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto place = place_of(context->saved_data["place"].toIntVector());
    return {dropped(gradients[0], place, context->saved_data["rate"].toDouble()),
            Variable(),
            Variable(),
            Variable(),
            Variable(),
            Variable(),
            Variable()};
  }
  static DropoutPlace place_of(const std::vector<int64_t>& numbers) {
    return {.seed = static_cast<uint64_t>(numbers[0]),
            .step = numbers[1],
            .sequence = numbers[2],
            .layer = static_cast<int>(numbers[3]),
            .site = static_cast<int>(numbers[4])};
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

at::Tensor dropped_by_loop(const at::Tensor& input, const DropoutPlace& first, double rate) {
  const at::Tensor x = input.contiguous();
  at::Tensor y = at::empty_like(x);
  constexpr int64_t kPiece = 4096;  // numbers at a time: they stay in the nearest cache
  const int64_t sequences = x.size(0), size = x.numel() / std::max<int64_t>(1, sequences);
  const int64_t pieces = (size + kPiece - 1) / kPiece;
  const uint32_t threshold = dropout_threshold(rate);
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "dropout", [&] {
    using Factor = at::opmath_type<scalar_t>;
    const auto scale = static_cast<Factor>(1 / (1 - rate));
    const scalar_t* in = x.data_ptr<scalar_t>();
    scalar_t* out = y.data_ptr<scalar_t>();
    at::parallel_for(0, sequences * pieces, 4, [&](int64_t begin, int64_t end) {
      std::array<uint32_t, kPiece> numbers;
      for (int64_t piece = begin; piece < end; ++piece) {
        DropoutPlace place = first;
        place.sequence += piece / pieces;
        const int64_t offset = piece % pieces * kPiece, count = std::min(kPiece, size - offset);
        dropout_numbers(place, offset / 4, (count + 3) / 4, numbers.data());
        const scalar_t* from = in + piece / pieces * size + offset;
        scalar_t* to = out + piece / pieces * size + offset;
        for (int64_t i = 0; i < count; ++i) {
          const Factor value = static_cast<Factor>(from[i]) * scale;
          to[i] = static_cast<scalar_t>(numbers[static_cast<std::size_t>(i)] < threshold ? Factor{0} : value);
        }
      }
    });
  });
  return y;
}

at::Tensor dropped_by_operators(const at::Tensor& x, const DropoutPlace& first, double rate) {
  const int64_t sequences = x.size(0), size = x.numel() / std::max<int64_t>(1, sequences);
  const int64_t blocks = (size + 3) / 4;
  const at::TensorOptions integers = x.options().dtype(at::kLong);
  const at::Tensor block = at::arange(blocks, integers).unsqueeze(0).expand({sequences, blocks});
  const at::Tensor sequence =
      at::bitwise_and(at::arange(first.sequence, first.sequence + sequences, integers), Philox::kLow)
          .unsqueeze(1)
          .expand({sequences, blocks});
  const int64_t tag = 4 * int64_t{first.layer} + first.site;
  Philox numbers{
      at::bitwise_and(block, Philox::kLow), sequence,
      at::full({1, 1}, static_cast<int64_t>(static_cast<uint32_t>(first.step)), integers)
          .expand({sequences, blocks}),
      at::bitwise_or(at::bitwise_and(at::bitwise_right_shift(block, 32) * 65536, Philox::kLow), tag)};
  auto key0 = static_cast<uint32_t>(first.seed), key1 = static_cast<uint32_t>(first.seed >> 32);
  for (int i = 0; i < 10; ++i, key0 += 0x9e3779b9, key1 += 0xbb67ae85) numbers.round(key0, key1);
  const at::Tensor kept = at::stack({numbers.a, numbers.b, numbers.c, numbers.d}, 2)
                              .view({sequences, 4 * blocks})
                              .narrow(1, 0, size)
                              .ge(static_cast<int64_t>(dropout_threshold(rate)))
                              .view(x.sizes());
  // A product with 0 would keep what is not finite.
  return (x * (1 / (1 - rate))).masked_fill_(kept.logical_not(), 0.0);
}

at::Tensor Dropout::operator()(const at::Tensor& x, const Batch& batch, DropoutSite site) const {
  if (rate == 0 || !batch.step) return x;
  return DropoutFunction::apply(x, static_cast<int64_t>(seed), *batch.step, batch.first_sequence,
                                int64_t{layer}, static_cast<int64_t>(site), rate);
}

}  // namespace sailor
