// Memory of one rank under the product's own trainer, by source. Pure.
#pragma once

#include <span>

#include "planner/profile/layer_profile.h"
#include "planner/simulator/prediction.h"
#include "planner/spec/job_spec.h"

namespace sailor {

// Microbatches whose activations stage `stage` of `stages` holds at once under 1F1B.
int in_flight(int stage, int stages, int microbatches);

struct StageMemoryInput {
  int microbatch = 1;  // sequences
  int in_flight = 1;   // microbatches whose activations are held
  bool has_previous = false;
  bool has_next = false;
  int64_t input_elements = 0;  // of one sequence, from the previous stage
  bool data_parallel = false;  // gradients are reduced with other replicas
  int64_t base_bytes = 0;
};

// `layers` are the stage's layers, sizes at its TP degree. Weights and gradients take one element per
// parameter in the training precision; AdamW adds two moments, and for 16-bit weights a 32-bit master copy.
// Communication: one message being sent and one being received per neighbour, and the gradient buffer of the
// largest layer when replicas are summed.
MemoryBreakdown stage_memory(std::span<const LayerSizes> layers, const StageMemoryInput& input,
                             Precision precision);

}  // namespace sailor
