// Draws the inputs of the closed loop: a small model and random plans for it. A pure function of the seed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/spec/job_spec.h"
#include "tests/layout_text.h"

namespace sailor::closed_loop {

using Random = uint64_t;  // state of the generator

struct Limits {
  int min_ranks = 1;
  int max_ranks = 2;
  int max_tp = 2;
  std::vector<std::string> gpu_types;  // chosen randomly per stage
  ShapeLayout layout{};                // of every plan; empty: random
  bool placed = false;                 // place stages on nodes of up to four GPUs, which share an interface
  bool features = false;               // interleaving, ZeRO, split tokens and recomputation
  bool offload = false;                // one more, for devices with memory of their own
};

// A model that several plans share, so that it is profiled once.
struct Model {
  JobSpec job;  // global_batch and steps depend on the plan
  std::vector<int> microbatches;
  std::vector<int> tps;
};

Model draw_model(Random& random, bool emulated, const Limits& limits);
// The job's global batch is the plan's. `index` spreads the kinds of layouts: every few plans include each
// kind that fits the limits.
Plan draw_plan(Random& random, const Model& model, const Limits& limits, int index);
// In the format of tests/layout_text.h.
std::string layout_text(const Plan& plan);

}  // namespace sailor::closed_loop
