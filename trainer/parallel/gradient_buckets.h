// In which portions a rank's gradients are summed over the pipelines, and how they lie in its buffer. Pure.
//
// The unit is a layer, because a layer's gradients are all finished by one backward. Neighbouring layers that
// the same ranks hold in every pipeline share a bucket until it is large enough to outweigh a message's
// latency. Buckets come in the order in which the last backward finishes them: from the last layer down, on
// every rank; parameters that count as a layer past the last (a matrix that two layers share) come at the
// end. A bucket is made of the sharded parameters of its layers and then the replicated ones, so that each
// part that the rank sums with one group lies together: unless TP degrees differ between pipelines in such a
// way that the rank sums different rows with different groups.
//
// Every member of a group comes to the same buckets, with the same elements in the same order.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/plan/rank_layout.h"
#include "trainer/model/layer.h"
#include "trainer/parallel/groups.h"

namespace sailor {

// From here on a bucket takes no further layer.
constexpr int64_t kBucketBytes = int64_t{4} << 20;

// A run of elements of one parameter.
struct GradientSegment {
  std::size_t parameter = 0;  // index in GradientLayout::order
  int64_t first = 0;          // element of the rank's parameter
  int64_t count = 0;
};

// What a rank sums with one group when the layers of a bucket are finished.
struct GradientPart {
  std::size_t group = 0;  // index in the list of the plan's groups
  std::vector<GradientSegment> segments;
  int64_t count = 0;  // elements
};

struct GradientBucket {
  int first_layer = 0;  // [first_layer, end_layer)
  int end_layer = 0;
  bool summed = false;                  // the layers have more than one holder
  std::vector<std::size_t> parameters;  // indices in GradientLayout::order
  std::vector<GradientPart> parts;      // of this rank; none where replicated parameters come from TP rank 0
};

struct GradientLayout {
  std::vector<Parameter*> order;  // of the parameters in the buffer
  std::vector<GradientBucket> buckets;
};

// `parameters` are all of the rank's, each once. `groups` are the plan's (groups.h).
GradientLayout gradient_layout(const Plan& plan, const RankLayout& layout, int rank,
                               const std::vector<GradientGroup>& groups,
                               const std::vector<Parameter*>& parameters);

}  // namespace sailor
