#include "trainer/checkpoint/held_state.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <stdexcept>

#include "trainer/parallel/parameter_place.h"

namespace sailor {
namespace {

const char* memory_of(const at::Tensor& tensor) {
  return static_cast<const char*>(tensor.data_ptr());
}

std::map<std::string, std::size_t> parameter_indices(const std::map<std::string, ParameterSpec>& specs) {
  std::map<std::string, std::size_t> indices;
  for (const auto& [name, spec] : specs) indices.emplace(name, indices.size());
  return indices;
}

}  // namespace

HeldState held_by(const RankState& state, const StateVersion& version) {
  HeldState held{.version = version,
                 .optimizer_steps = state.optimizer.steps_done(),
                 .loss_scale = state.loss_scale(),
                 .spikes = state.spikes(),
                 .device = &state.device};
  const std::map<std::string, ParameterSpec> specs = specs_by_name(state.job, state.layout);
  const std::map<std::string, std::size_t> indices = parameter_indices(specs);
  const std::vector<OptimizerSlice>& slices = state.optimizer.slices();
  for (std::size_t i = 0; i < slices.size(); ++i) {
    const ParameterSpec& spec = specs.at(slices[i].name);
    HeldRange range{.parameter = indices.at(slices[i].name),
                    .first = base_of(state.slot, spec) + slices[i].first};
    range.count = std::min(slices[i].count, real_elements(spec) - range.first);
    if (range.count <= 0) continue;
    const std::vector<OptimizerState>& states = state.optimizer.state(i);
    const auto master = std::find_if(states.begin(), states.end(),
                                     [](const OptimizerState& one) { return one.name == kMasterState; });
    // The weights of a master copy may be freed (RankTrainer::make_room()).
    range.tensors.push_back(memory_of(master == states.end() ? slices[i].value : master->tensor));
    for (const OptimizerState& one : states)
      if (one.name != kMasterState) range.tensors.push_back(memory_of(one.tensor));
    held.ranges.push_back(std::move(range));
  }
  return held;
}

HeldState held_by(const JobSpec& job, const RankLayout& layout, const StateSnapshot& snapshot) {
  HeldState held{.version = snapshot.version(),
                 .optimizer_steps = snapshot.optimizer_steps(),
                 .loss_scale = snapshot.loss_scale(),
                 .spikes = snapshot.spikes(),
                 .copy = true};
  const std::map<std::string, std::size_t> indices = parameter_indices(specs_by_name(job, layout));
  // pieces_to_write() puts the states of a range behind its values.
  for (const ShardPiece& piece : snapshot.pieces()) {
    if (const auto parameter = indices.find(piece.tensor); parameter != indices.end()) {
      held.ranges.push_back({.parameter = parameter->second, .first = piece.first, .count = piece.count});
    } else if (held.ranges.empty() || held.ranges.back().first != piece.first) {
      throw std::logic_error("snapshot: " + piece.tensor + " stands without its values");
    }
    held.ranges.back().tensors.push_back(static_cast<const char*>(piece.data));
  }
  return held;
}

}  // namespace sailor
