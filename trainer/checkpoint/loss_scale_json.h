// The state of a loss scale as JSON, in manifests and descriptions of copies.
#pragma once

#include <stdexcept>

#include "trainer/optim/loss_scaler.h"

namespace sailor {

// `Json` is any of nlohmann's types.
template <class Json>
Json loss_scale_json(const LossScaleState& state) {
  return {{"scale", state.scale},
          {"clean_steps", state.clean_steps},
          {"tolerated", state.tolerated},
          {"skipped_steps", state.skipped_steps},
          {"skipped_at_minimum", state.skipped_at_minimum}};
}

// Throws what `Json` throws, and std::runtime_error for a state that no scaler has.
template <class Json>
LossScaleState loss_scale_of(const Json& json) {
  const LossScaleState state{json.at("scale"), json.at("clean_steps"), json.at("tolerated"),
                             json.at("skipped_steps"), json.at("skipped_at_minimum")};
  const bool possible = state.scale >= 0 && state.clean_steps >= 0 && state.tolerated >= 0 &&
                        state.skipped_steps >= 0 && state.skipped_at_minimum >= 0;
  if (!possible) throw std::runtime_error("its loss scale is not one");
  return state;
}

}  // namespace sailor
