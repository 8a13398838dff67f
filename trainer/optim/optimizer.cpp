#include "trainer/optim/optimizer.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <utility>

#include "planner/spec/error.h"
#include "trainer/model/torch_device.h"
#include "trainer/optim/adamw.h"
#include "trainer/optim/muon.h"
#include "trainer/optim/sgd.h"

namespace sailor {
namespace {

constexpr int64_t kGrain = 1 << 15;  // elements that are worth a thread

bool needs_master(at::ScalarType type) {
  return type == at::kBFloat16 || type == at::kHalf;
}

void check(const OptimizerSlice& slice) {
  auto fail = [&slice](const char* what) {
    throw std::invalid_argument(fmt::format("optimizer: {}: {}", slice.name, what));
  };
  if (!slice.value.defined() || !slice.gradient.defined()) fail("no value or no gradient");
  if (slice.count <= 0 || slice.value.numel() != slice.count || slice.gradient.numel() != slice.count)
    fail("value and gradient are not as long as the slice");
  if (!slice.value.is_contiguous() || !slice.gradient.is_contiguous()) fail("not contiguous");
  const auto value = slice.value.scalar_type();
  const auto gradient = slice.gradient.scalar_type();
  const bool fits = value == at::kDouble
                        ? gradient == at::kDouble
                        : (value == at::kFloat || needs_master(value)) && gradient == at::kFloat;
  if (!fits) fail("types of value and gradient do not fit: f32, bf16 or f16 with f32, f64 with f64");
}

}  // namespace

Optimizer::Optimizer(const OptimizerSpec& spec, std::vector<OptimizerSlice> slices, Device* offloads)
    : offloads_(offloads), slices_(std::move(slices)) {
  int64_t total = 0;
  for (std::size_t i = 0; i < slices_.size(); ++i) {
    OptimizerSlice& slice = slices_[i];
    check(slice);
    slice.value = slice.value.detach().view({-1});  // the memory stays shared
    slice.gradient = slice.gradient.detach().view({-1});
    std::vector<OptimizerState> state;
    for (const std::string& name : state_names(spec, slice.linear)) state.push_back({name, new_state(i)});
    if (needs_master(slice.value.scalar_type())) {
      state.push_back({kMasterState, new_state(i)});
      state.back().tensor.copy_(slice.value);
    }
    states_.push_back(std::move(state));
    ends_.push_back(total += slice.count);
  }
}

void Optimizer::step(double learning_rate, double gradient_scale) {
  if (!slices_.empty() && !slices_.front().value.device().is_cpu())
    return step_by_operators(learning_rate, gradient_scale);
  ++steps_done_;
  begin(learning_rate);
  for_each_range(
      [&](std::size_t i, int64_t first, int64_t count) { update(i, first, count, gradient_scale); });
}

// One parallel region over all elements: small parameters cost no region of their own.
void Optimizer::for_each_range(const RangeWork& work) const {
  if (ends_.empty()) return;
  at::parallel_for(0, ends_.back(), kGrain, [&](int64_t begin, int64_t end) {
    auto i = static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), begin) - ends_.begin());
    while (begin < end) {
      const int64_t until = std::min(end, ends_[i]);
      work(i, begin - (ends_[i] - slices_[i].count), until - begin);
      begin = until;
      ++i;
    }
  });
}

at::Tensor Optimizer::new_state(std::size_t i) const {
  const at::Tensor& like = slices_[i].gradient;
  return offloads_ ? zeros_on_host(like, *offloads_) : at::zeros_like(like);
}

int64_t Optimizer::offloaded_bytes() const {
  int64_t bytes = 0;
  for (std::size_t i = 0; offloads_ && i < slices_.size(); ++i) {
    for (const OptimizerState& state : states_[i])
      bytes += static_cast<int64_t>(state.tensor.nbytes()) * (state.name == kAverageState ? 2 : 1);
  }
  return bytes;
}

const at::Tensor* Optimizer::state(std::size_t i, const char* name) const {
  for (const OptimizerState& state : states_[i])
    if (state.name == name) return &state.tensor;
  return nullptr;
}

void Optimizer::keep_average() {
  for (std::size_t i = 0; i < slices_.size(); ++i) {
    const at::Tensor* master = state(i, kMasterState);
    const at::Tensor& source = master ? *master : slices_[i].value;
    states_[i].push_back({kAverageState, new_state(i).copy_(source)});
  }
}

void Optimizer::update_average(double decay) {
  const auto source = [this](std::size_t i) {
    const at::Tensor* master = state(i, kMasterState);
    return master ? *master : slices_[i].value;
  };
  if (slices_.empty()) return;
  if (!slices_.front().value.device().is_cpu()) {
    for (std::size_t i = 0; i < slices_.size(); ++i)
      at::Tensor(*state(i, kAverageState)).mul_(decay).add_(source(i), 1 - decay);
    return;
  }
  for_each_range([&](std::size_t i, int64_t first, int64_t count) {
    const at::Tensor value = source(i), &average = *state(i, kAverageState);
    if (value.scalar_type() == at::kDouble) {
      average_update(average.data_ptr<double>() + first, value.data_ptr<double>() + first, count, decay);
    } else {
      average_update(average.data_ptr<float>() + first, value.data_ptr<float>() + first, count, decay);
    }
  });
}

void Optimizer::exchange_average() {
  exchanged_ = !exchanged_;
  for (std::size_t i = 0; i < slices_.size(); ++i) {
    at::Tensor value = slices_[i].value, average = *state(i, kAverageState);
    if (const at::Tensor* master = state(i, kMasterState)) {
      value.copy_(exchanged_ ? average : *master);
    } else {
      const at::Tensor copy = value.clone();
      value.copy_(average);
      average.copy_(copy);
    }
  }
}

void Optimizer::step_by_operators(double learning_rate, double gradient_scale) {
  ++steps_done_;
  begin(learning_rate);
  std::vector<std::vector<std::size_t>> alike;
  for (std::size_t i = 0; i < slices_.size(); ++i) {
    const auto like = std::find_if(alike.begin(), alike.end(), [&](const std::vector<std::size_t>& members) {
      return slices_[members.front()].is_updated_like(slices_[i]);
    });
    (like == alike.end() ? alike.emplace_back() : *like).push_back(i);
  }
  for (const std::vector<std::size_t>& members : alike) update_on_device(members, gradient_scale);
}

std::vector<UpdatedTensors> Optimizer::whole(const std::vector<std::size_t>& alike) const {
  std::vector<UpdatedTensors> runs;
  for (const std::size_t i : alike) {
    UpdatedTensors& run = runs.emplace_back(UpdatedTensors{slices_[i].value, {}, slices_[i].gradient, {}});
    for (const OptimizerState& state : states_[i]) {
      if (state.name == kMasterState) {
        run.rounded = std::exchange(run.value, state.tensor);
      } else if (state.name != kAverageState) {
        run.states.push_back(state.tensor);
      }
    }
  }
  return runs;
}

void Optimizer::values_were_loaded() {
  for (std::size_t i = 0; i < slices_.size(); ++i) {
    for (OptimizerState& state : states_[i]) {
      if (state.name == kMasterState || state.name == kAverageState) state.tensor.copy_(slices_[i].value);
    }
  }
}

std::vector<OptimizerSlice> in_groups(const JobSpec& job, std::vector<OptimizerSlice> slices) {
  const auto groups = groups_by_parameter(job.training.optimizer.groups, job.model, job.training.lora);
  for (OptimizerSlice& slice : slices) {
    const auto group = groups.find(slice.name);
    if (group == groups.end()) continue;
    slice.lr_scale = group->second.lr_scale;
    slice.weight_decay = group->second.weight_decay;
  }
  return slices;
}

std::vector<std::string> state_names(const OptimizerSpec& spec, bool linear) {
  const bool adamw = spec.name == "adamw" || (spec.orthogonalizes() && !linear);
  if (adamw) return {"m", "v"};
  if (spec.momentum > 0 || spec.orthogonalizes()) return {"momentum"};
  return {};
}

std::unique_ptr<Optimizer> make_optimizer(const OptimizerSpec& spec, std::vector<OptimizerSlice> slices,
                                          Device* offloads) {
  if (spec.name == "adamw") return std::make_unique<AdamW>(spec, std::move(slices), offloads);
  if (spec.name == "muon") return std::make_unique<Muon>(spec, std::move(slices), offloads);
  if (spec.name == "sgd") return std::make_unique<Sgd>(spec, std::move(slices), offloads);
  throw InputError(fmt::format(
      "training.optimizer.name: the trainer does not know \"{}\" (known: adamw, muon, sgd)", spec.name));
}

}  // namespace sailor
