// The simulator's prediction of a plan, with its parts. Value types.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/spec/objective.h"

namespace sailor {

// One rank, by source. All ranks of a TP group are equal.
struct MemoryBreakdown {
  int64_t weights_bytes = 0;
  int64_t frozen_bytes = 0;  // of weights_bytes: of weights that are not trained
  int64_t gradients_bytes = 0;
  int64_t optimizer_bytes = 0;         // moments and averages
  int64_t master_bytes = 0;            // 32-bit copies of 16-bit weights
  int64_t activations_bytes = 0;       // in_flight x microbatch x per sequence
  int64_t workspace_bytes = 0;         // logits and other tensors that exist only inside a layer
  int64_t communication_bytes = 0;     // send and receive buffers, gradient buckets
  int64_t base_bytes = 0;              // the process before any tensor, measured per platform
  int64_t fragmentation_bytes = 0;     // lost between the blocks of the allocator
  int64_t offloaded_bytes = 0;         // in the memory of the rank's node, not its GPU's: not in total()
  int64_t offloaded_inputs_bytes = 0;  // of these: inputs of blocks

  int64_t total() const {
    return weights_bytes + gradients_bytes + optimizer_bytes + master_bytes + activations_bytes +
           workspace_bytes + communication_bytes + base_bytes + fragmentation_bytes;
  }
  bool operator==(const MemoryBreakdown&) const = default;
};

struct StagePrediction {
  int pipeline = 0;
  int stage = 0;
  double forward_s = 0;  // one microbatch, communication between stages excluded
  double backward_s = 0;
  double send_forward_s = 0;   // to the next stage; 0 on the last
  double send_backward_s = 0;  // to the previous stage; 0 on the first
  double sync_s = 0;           // gradient all-reduce of this stage's layers
  double update_s = 0;         // optimizer step
  bool estimated = false;      // its layer times were not measured (profile/estimated_profile.h)
  int in_flight = 0;  // microbatches whose activations are held at the same time: min(P - i, microbatches)
  double busy_fraction = 0;  // of the iteration; the rest is bubble, communication and waiting
  MemoryBreakdown memory;
  int64_t capacity_bytes = 0;
  // Of a rank that offloads: what it needs of its node's memory, and its part of that; 0 = not known.
  int64_t host_bytes = 0, host_capacity_bytes = 0;
};

// An expense of an iteration.
struct Spent {
  double gpus = 0;
  double traffic = 0;  // between zones

  double total() const { return gpus + traffic; }
};

inline PerExpense<double> totals(const PerExpense<Spent>& spent) {
  PerExpense<double> out;
  for (const Expense expense : kExpenses) out[expense] = spent[expense].total();
  return out;
}

struct Prediction {
  double iteration_s = 0;
  double pipeline_s = 0;  // slowest pipeline's forward and backward timeline
  double sync_s = 0;      // gradient all-reduce that is not overlapped
  double update_s = 0;
  double overhead_s = 0;
  double message_bytes = 0;  // the largest that a rank sends to another stage at once
  PerExpense<Spent> spent;
  // Relative uncertainty of the layer times if some of them are estimates; 0 = all were measured.
  double uncertainty = 0;
  bool fits = true;                     // every stage's memory within its capacity
  std::vector<StagePrediction> stages;  // by pipeline, then stage

  double iterations_per_s() const { return iteration_s > 0 ? 1.0 / iteration_s : 0; }
  double total(Expense expense) const { return spent[expense].total(); }
  double usd_per_iteration() const { return total(Expense::cost); }
  Figures figures() const { return {iteration_s, totals(spent)}; }
  int64_t peak_memory_bytes() const;
  // Of the layer times of a microbatch through all stages, the share that rests on estimates.
  double estimated_share() const;
};

}  // namespace sailor
