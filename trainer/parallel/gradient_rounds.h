// ZeRO-2: when the ranks of a group sum the gradients of a layer, and where a rank accumulates them until
// then, if none of them has room for the gradients of all its layers. Pure.
//
// Each layer's gradients are summed after the layer's backward of every microbatch: a round. All ranks must
// run through the rounds in one order (common_order.h), though pipelines have other stages and other numbers
// of microbatches: by microbatch, and from the last layer down. A pipeline with fewer microbatches adds
// nothing in some of the rounds. Interleaved chunks finish in another order, which is one only if all
// pipelines cut the layers alike (check_plan()).
//
// A rank needs memory for the gradients of two layers: those that are summed and those that are computed. A
// matrix that two layers share is not summed before the end of the iteration, because two stages add to it.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/plan/rank_layout.h"
#include "trainer/parallel/gradient_buckets.h"

namespace sailor {

// Does the plan have rounds? Without them gradients are summed once an iteration.
bool sums_every_microbatch(const Plan& plan);
// The sequences of a pipeline whose gradients it has at once: those of each microbatch, or without rounds
// all.
std::vector<int64_t> summed_sequences(const Plan& plan, int pipeline);

struct GradientRound {
  std::size_t bucket = 0;  // index in GradientLayout::buckets
  int microbatch = -1;     // of the rank's pipeline; -1: it adds nothing
};

// Is a bucket of the plan's summed in rounds?
bool has_rounds(const Plan& plan, const GradientBucket& bucket);
// Are values gathered in every microbatch? That is ZeRO-3, with replicas.
bool gathers_every_microbatch(const Plan& plan);
// Those of this bucket's parameter? What the ranks of a TP group replicate is small, and stays whole.
bool is_gathered(const Plan& plan, const GradientBucket& bucket, const Parameter& parameter);
// Those of a rank, in order. Empty unless sums_every_microbatch().
std::vector<GradientRound> gradient_rounds(const Plan& plan, const RankSlot& slot,
                                           const GradientLayout& layout);

// Memory of parameters' gradients or values, of which buckets that take turns share an area.
struct BucketPlaces {
  std::vector<int64_t> offsets;  // of each parameter in GradientLayout::order
  std::vector<int> area;         // by bucket: buckets of one area use the same memory; -1: no other uses it
  int64_t elements = 0;
};
// For gradients: buckets with rounds take turns.
BucketPlaces gradient_places(const Plan& plan, const GradientLayout& layout);
// For values: gathered ones take turns.
BucketPlaces value_places(const Plan& plan, const GradientLayout& layout);

}  // namespace sailor
