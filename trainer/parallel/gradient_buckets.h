// The buckets in which a rank's gradients are reduced over the pipelines, and their layout in its buffer.
// Pure.
//
// The unit is a layer, because one backward finishes all gradients of a layer. Adjacent layers that the same
// ranks hold in every pipeline share a bucket until it is large enough to outweigh a message's latency;
// where gradients are summed after every microbatch (gradient_rounds.h), every layer is a bucket.
// Buckets are in the order in which the last backward finishes them: from the last layer down, on every rank;
// parameters that count as a layer past the last (a matrix that two layers share) come at the end. A bucket
// has the sharded parameters of its layers and then the replicated ones, so that each part that the rank
// reduces with one group is contiguous, unless TP degrees differ between pipelines in such a way that the
// rank reduces different rows with different groups.
//
// Every member of a group computes the same buckets, with the same elements in the same order.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/plan/rank_layout.h"
#include "trainer/model/layer.h"
#include "trainer/parallel/groups.h"

namespace sailor {

// At this size a bucket takes no further layer.
constexpr int64_t kBucketBytes = int64_t{4} << 20;

// A range of elements of one parameter.
struct GradientSegment {
  std::size_t parameter = 0;  // index in GradientLayout::order
  int64_t first = 0;          // element of the rank's parameter
  int64_t count = 0;
};

// The part of a bucket that a rank reduces with one group when its layers are finished. With ZeRO-3 sharded
// parameters, which are gathered, are in other parts than replicated ones.
struct GradientPart {
  std::size_t group = 0;  // index in the list of the plan's groups
  bool gathered = false;  // with ZeRO-3, in every microbatch
  std::vector<GradientSegment> segments;
  int64_t count = 0;  // elements
};

struct GradientBucket {
  int first_layer = 0;  // [first_layer, end_layer)
  int end_layer = 0;
  bool summed = false;                  // the layers have several holders
  std::vector<std::size_t> parameters;  // indices in GradientLayout::order
  std::vector<GradientPart> parts;      // of this rank; none if replicated parameters come from TP rank 0
};

struct GradientLayout {
  std::vector<Parameter*> order;  // in the order of the buffer
  std::vector<GradientBucket> buckets;
};

// `parameters` are all of the rank's, each once. `groups` are the plan's (groups.h).
GradientLayout gradient_layout(const Plan& plan, const RankLayout& layout, int rank,
                               const std::vector<GradientGroup>& groups,
                               const std::vector<Parameter*>& parameters);

}  // namespace sailor
