// Places the stages of a new plan on the GPUs whose processes already have most of their state, so that a
// change of plan moves little data. Pure and deterministic.
#pragma once

#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/spec/snapshot.h"

namespace sailor {

// A GPU with a process, and the state of the process under the previous plan: a TP rank's share of some
// layers.
struct HeldStage {
  std::string node;
  int gpu = 0;
  std::vector<std::pair<int, int>> layers{};  // half-open ranges; empty = nothing
  int tp_rank = 0;
  int tp = 1;
};

// The state of every GPU of a placed plan.
std::vector<HeldStage> held_stages(const Plan& plan);

// Places `plan` again on the free GPUs of `snapshot`: stages go to GPUs that have part of their state,
// largest part first, the others as in place(). If a stage does not fit, the placement does not change.
// Returns the number of layers that stay in place, with TP shares as fractions.
double keep_stages(Plan& plan, const Snapshot& snapshot, const std::vector<HeldStage>& held);

}  // namespace sailor
