#include "trainer/model/parameter_maker.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "trainer/model/initial_values.h"

namespace sailor {

const ParameterSpec* ParameterMaker::find(const std::string& name) const {
  const std::string full = fmt::format("{}.{}", layer_, name);
  const auto found = std::find_if(listed_.begin(), listed_.end(),
                                  [&](const ParameterSpec& spec) { return spec.name == full; });
  return found == listed_.end() ? nullptr : &*found;
}

const ParameterSpec& ParameterMaker::listed(const std::string& name) const {
  if (const ParameterSpec* spec = find(name)) return *spec;
  throw std::logic_error(
      fmt::format("family {} lists no parameter {} of layer {}", model().family, name, layer_));
}

at::Tensor ParameterMaker::take_if_listed(const std::string& name) {
  const ParameterSpec* spec = find(name);
  return spec ? make(*spec) : at::Tensor();
}

at::Tensor ParameterMaker::take(const std::string& name) {
  return make(listed(name));
}

at::Tensor ParameterMaker::take_head() {
  for (const ParameterSpec& spec : listed_) {
    if (spec.tied_copy) return make(spec);
  }
  return take("head.weight");
}

// From row `first` on.
void ParameterMaker::fill(const ParameterSpec& spec, int64_t first, const at::Tensor& value) const {
  const int64_t real = std::clamp<int64_t>(spec.real_rows - first, 0, value.size(0));
  const int64_t row = std::max<int64_t>(1, spec.columns);
  const at::Tensor real_rows = value.narrow(0, 0, real);
  if (real == 0) return;  // nothing but padding
  if (context_.weights && !spec.adapter) {
    context_.weights->read(spec, first, real_rows);
  } else if (spec.deviation > 0) {
    real_rows.copy_(normal_values(context_.seed, spec.name, first * row, real * row, spec.mean,
                                  spec.deviation, context_.dtype)
                        .view_as(real_rows));
  } else {
    real_rows.fill_(spec.mean);
  }
}

at::Tensor ParameterMaker::make(const ParameterSpec& spec) {
  // A tied matrix is made once for both layers that have it.
  const bool shared = context_.shared != nullptr && spec.layer == model().num_all_layers();
  if (shared) {
    const auto here = context_.shared->find(spec.name);
    if (here != context_.shared->end()) return here->second;
  }
  const int64_t held = spec.sharded ? spec.rows / context_.tp_size() : spec.rows;
  const int64_t first = spec.sharded ? held * context_.tp_rank() : 0;
  const std::vector<int64_t> shape =
      spec.columns > 0 ? std::vector<int64_t>{held, spec.columns} : std::vector<int64_t>{held};
  at::Tensor value;
  if (context_.unfilled) {
    value = at::zeros({1}, at::TensorOptions(context_.device).dtype(context_.dtype)).expand(shape);
  } else {
    value = at::zeros(shape, context_.dtype);
    fill(spec, first, value);
    value = value.to(context_.device);
  }
  const bool frozen = context_.lora && !spec.adapter;
  value.set_requires_grad(!frozen);
  parameters_.push_back({spec.name, spec.layer, spec.sharded, spec.decay, value, spec.tied_copy, frozen,
                         is_linear_weight(spec, model())});
  if (shared) (*context_.shared)[spec.name] = value;
  return value;
}

}  // namespace sailor
