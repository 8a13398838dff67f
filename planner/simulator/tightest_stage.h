// The stage with the highest memory utilization. Pure.
#pragma once

#include <cstddef>

#include "planner/simulator/prediction.h"

namespace sailor {

struct TightestStage {
  size_t index = 0;  // into Prediction::stages
  double part = 0;   // fraction of its GPUs' memory that is used
};

inline TightestStage tightest_stage(const Prediction& prediction) {
  TightestStage most;
  for (size_t i = 0; i < prediction.stages.size(); ++i) {
    const StagePrediction& stage = prediction.stages[i];
    if (stage.capacity_bytes <= 0) continue;
    const double part = static_cast<double>(stage.memory.total()) / static_cast<double>(stage.capacity_bytes);
    if (part > most.part) most = {i, part};
  }
  return most;
}

}  // namespace sailor
