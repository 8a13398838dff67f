#include "trainer/optim/muon.h"

namespace sailor {

Muon::Muon(const OptimizerSpec& spec, std::vector<OptimizerSlice> slices, Device* offloads)
    : AdamW(spec, std::move(slices), offloads), spec_(spec), directions_(this->slices().size()) {}

MuonCoefficients Muon::coefficients(const OptimizerSlice& slice, double gradient_scale) const {
  const double rate = learning_rate_ * slice.lr_scale;
  return {.learning_rate = rate,
          .keep = 1 - rate * slice.own_weight_decay(spec_.weight_decay),
          .momentum = spec_.momentum,
          .gradient_scale = gradient_scale,
          .nesterov = spec_.nesterov};
}

std::vector<std::size_t> Muon::linear_slices() {
  std::vector<std::size_t> linear;
  for (std::size_t i = 0; i < slices().size(); ++i) {
    if (!slices()[i].linear) continue;
    linear.push_back(i);
    if (!directions_[i].defined()) directions_[i] = at::empty_like(slices()[i].gradient);
  }
  return linear;
}

void Muon::start_by_operators(double gradient_scale) {
  const std::vector<std::size_t> linear = linear_slices();
  std::vector<at::Tensor> directions;
  for (const std::size_t i : linear) directions.push_back(directions_[i]);
  muon_directions_by_operators(whole(linear), directions, coefficients({}, gradient_scale));
}

void Muon::start(double gradient_scale) {
  if (!slices().empty() && !slices().front().value.device().is_cpu())
    return start_by_operators(gradient_scale);
  const MuonCoefficients c = coefficients({}, gradient_scale);
  linear_slices();  // makes their directions
  for_each_range([&](std::size_t i, int64_t first, int64_t count) {
    if (!slices()[i].linear) return;
    const auto run = [&]<class T>(T* direction) {
      muon_direction(direction + first, slices()[i].gradient.data_ptr<T>() + first,
                     state(i).front().tensor.data_ptr<T>() + first, count, c);
    };
    if (directions_[i].scalar_type() == at::kDouble) {
      run(directions_[i].data_ptr<double>());
    } else {
      run(directions_[i].data_ptr<float>());
    }
  });
}

void Muon::drop_directions() {
  for (at::Tensor& direction : directions_) direction = at::Tensor();
}

void Muon::begin(double learning_rate) {
  AdamW::begin(learning_rate);
  learning_rate_ = learning_rate;
}

void Muon::update(std::size_t i, int64_t first, int64_t count, double gradient_scale) {
  const OptimizerSlice& slice = slices()[i];
  if (!slice.linear) return AdamW::update(i, first, count, gradient_scale);
  const MuonCoefficients c = coefficients(slice, gradient_scale);
  with_values(i, first, [&]<class T, class R>(T* value, R* rounded) {
    muon_update(value, rounded, slice.gradient.data_ptr<T>() + first,
                state(i).front().tensor.data_ptr<T>() + first, directions_[i].data_ptr<T>() + first, count,
                c);
  });
}

void Muon::update_on_device(const std::vector<std::size_t>& alike, double gradient_scale) {
  const OptimizerSlice& like = slices()[alike.front()];
  if (!like.linear) return AdamW::update_on_device(alike, gradient_scale);
  std::vector<at::Tensor> directions;
  for (const std::size_t i : alike) directions.push_back(directions_[i]);
  muon_by_operators(whole(alike), directions, coefficients(like, gradient_scale));
}

}  // namespace sailor
