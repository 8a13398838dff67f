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

// x with elements left out, the rest scaled. `first` is the place of the first of the sequences, along
// dimension 0.
at::Tensor dropped(const at::Tensor& input, const DropoutPlace& first, double rate) {
  const at::Tensor x = input.contiguous();
  at::Tensor y = at::empty_like(x);
  constexpr int64_t kPiece = 4096;  // numbers at a time: they stay in the nearest cache
  const int64_t sequences = x.size(0), size = x.numel() / std::max<int64_t>(1, sequences);
  const int64_t pieces = (size + kPiece - 1) / kPiece;
  const uint32_t threshold = dropout_threshold(rate);
  AT_DISPATCH_FLOATING_TYPES_AND(at::kBFloat16, x.scalar_type(), "dropout", [&] {
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

}  // namespace

at::Tensor Dropout::operator()(const at::Tensor& x, const Batch& batch, DropoutSite site) const {
  if (rate == 0 || !batch.step) return x;
  return DropoutFunction::apply(x, static_cast<int64_t>(seed), *batch.step, batch.first_sequence,
                                int64_t{layer}, static_cast<int64_t>(site), rate);
}

}  // namespace sailor
