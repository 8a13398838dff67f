// The order of a GPU group's computations in an iteration: 1F1B (PipeDream-Flush) and interleaved 1F1B
// (Narayanan et al., 2021). Pure.
//
// A group has `chunks` chunks of the model; a microbatch passes chunk 0 of all groups, then chunk 1, and so
// on. Every group does W forwards (warm-up), then alternately one forward and one backward (steady), then the
// remaining backwards (cool-down), with M microbatches and P groups:
//
//     one chunk        W = min(P - 1 - group, M), microbatches in order
//     several chunks   W = min(2 (P - 1 - group) + (chunks - 1) P, chunks M); microbatches run in rounds of
//                      P: the forwards of a round through chunk 0, then chunk 1, ...; its backwards
//                      through the last chunk first
//
// With a split backward (planner/spec/split_backward.h) and a delay of d the weights of microbatch k come
// after the backward of microbatch k + d, and those that are left after the last backward.
//
// All groups do their forwards in the same order, and their backwards too, so that messages between two
// groups arrive in the order in which they are needed.
#pragma once

#include <vector>

#include "planner/spec/split_backward.h"

namespace sailor {

struct ScheduleStep {
  enum class Kind { forward, backward, weights };
  Kind kind = Kind::forward;
  int chunk = 0;
  int microbatch = 0;

  bool operator==(const ScheduleStep&) const = default;
};

// Requires 0 <= group < groups, microbatches >= 0, chunks >= 1; with several chunks at least two groups, and
// microbatches a multiple of the groups, and no `weight_delay`.
std::vector<ScheduleStep> schedule_steps(int chunks, int group, int groups, int microbatches,
                                         int weight_delay = kWholeBackward);

// Maximum (microbatch, chunk) pairs whose activations a group holds at the same time: min(W + 1, chunks M).
int most_in_flight(int chunks, int group, int groups, int microbatches);

}  // namespace sailor
