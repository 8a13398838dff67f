// Puts the stages of a new plan on the GPUs whose processes hold most of their state already, so that a
// change of plan moves little. Pure and deterministic.
#pragma once

#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/spec/snapshot.h"

namespace sailor {

// A GPU with a process, and what the process held under the plan before: a TP rank's share of some layers.
struct HeldStage {
  std::string node;
  int gpu = 0;
  std::vector<std::pair<int, int>> layers{};  // half-open ranges; empty = nothing
  int tp_rank = 0;
  int tp = 1;
};

// What every GPU of a placed plan holds.
std::vector<HeldStage> held_stages(const Plan& plan);

// Places `plan` anew on the free GPUs of `snapshot`: stages with a part of their state somewhere go there,
// most first, the others as place() does. Where that leaves no room for a stage, the plan stays as it was.
// Returns the layers, TP shares counted as fractions, that stay where they are.
double keep_stages(Plan& plan, const Snapshot& snapshot, const std::vector<HeldStage>& held);

}  // namespace sailor
