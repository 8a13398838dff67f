// Sizes and times of layers whose tokens are split, from those of the same layers when every rank has all
// tokens: over the TP group between the tensor-parallel regions (sequence parallelism), and over GPUs with
// the same weights (context parallelism). Pure.
#pragma once

#include <vector>

#include "planner/profile/layer_profile.h"
#include "planner/profile/network_profile.h"
#include "planner/spec/catalog.h"
#include "planner/spec/framework_style.h"

namespace sailor {

// `sizes` are those of a TP group of `tp` ranks, `alone` those without TP. What a rank of a group holds is
// whole + split / tp, and a rank without TP holds whole + split: so both are known, and of the whole part a
// share remains.
void split_tokens(std::vector<LayerSizes>& sizes, const std::vector<LayerSizes>& alone, int tp);

// What the times of a cell depend on.
struct SplitTimes {
  const JobSpec& job;
  const FrameworkStyle& style;
  const GpuType& type;
  Precision precision = Precision::bf16;
  int microbatch = 1;
  ReplicaShape shape{};
  const LinkCurve* link = nullptr;  // inside a replica; may be null if it is unknown
};

// The times change as the estimates of the type do (analytic_profile.h). Of a type without them, one that
// the catalog does not describe, only the inputs are known that a block gathers again. An emulated device
// waits for the times of its profile, whatever it does.
void split_tokens(LayerProfile::Cell& cell, const SplitTimes& of);

// With context parallelism a GPU has a part of the tokens of everything; what attention exchanges needs
// memory while it does.
void split_context(std::vector<LayerSizes>& sizes, const ModelSpec& model, Precision precision,
                   const ReplicaShape& shape);
// A GPU computes a microbatch as long as it would one with that part of the sequences, by the cells of the
// profile, and exchanges queries, keys, values and results with the others, in a ring keys and values once
// more (trainer/model/context_parallel.h, ring_attention.h); on an emulated device it does so while it waits.
void split_context(LayerProfile::Cell& cell, const LayerProfile& profile, const SplitTimes& of);
// Without the exchanges.
void share_context(LayerProfile::Cell& cell, const LayerProfile& profile, int microbatch,
                   const ReplicaShape& shape);

}  // namespace sailor
