// The state of a spike guard as JSON, in manifests and descriptions of copies.
#pragma once

#include <cmath>
#include <stdexcept>

#include "trainer/optim/spike_guard.h"

namespace sailor {

// `Json` is any of nlohmann's types.
template <class Json>
Json spike_json(const SpikeState& state) {
  return {{"skipped_steps", state.skipped_steps},
          {"skipped_in_row", state.skipped_in_row},
          {"norms", state.norms}};
}

// Throws what `Json` throws, and std::runtime_error for a state that no guard has.
template <class Json>
SpikeState spike_state_of(const Json& json) {
  SpikeState state{json.at("skipped_steps"), json.at("skipped_in_row"), {}};
  for (const Json& norm : json.at("norms")) state.norms.push_back(norm);
  for (const double norm : state.norms)
    if (!(norm >= 0) || !std::isfinite(norm))
      throw std::runtime_error("one of its gradient norms is not one");
  if (state.skipped_steps < state.skipped_in_row || state.skipped_in_row < 0)
    throw std::runtime_error("its number of skipped steps is not one");
  return state;
}

}  // namespace sailor
