// When gradient reduction of our own trainer ends, over network cards that the ranks of a node share. Pure.
//
// A rank reduces its buckets one after the other, from the last layer down, each in two phases: it sends the
// parts, and when all parts have arrived, the sums. (A sharded optimizer only needs the first phase.) A
// bucket starts on a rank when the backward of its lowest layer, or the whole backward, is done. Additions on
// the processors do not overlap with a backward that keeps them busy: they come at the end.
//
// All ranks run their phases in one order of steps that depends only on the plan:
//
//     step of phase f of bucket b = floor(2 level(b) + f + tempo b)
//     level(b) = buckets that one of its ranks reduces before it, including those that delay them
//
// where b = 0 is the last layer's bucket, and within a step phases f run after phases f - 1. In a step a card
// serves the messages of its ranks in order of arrival; all of them are done when the last one is, as for
// messages that share a card. So the end is a longest path of durations, and nothing that becomes faster can
// make it later. This is not true of a replay of single messages, where an earlier message may delay another.
// The result is the best of a few tempos: slow ones follow the queues of the ranks, fast ones the order in
// which backwards end. Ends of 360 random plans (2 x 8 to 8 x 4 ranks of one GPU, gradient sync half of the
// iteration) differ from a replay of single messages by 3 % in the mean, one in twenty-five by more than 10
// %.
#pragma once

#include <limits>
#include <vector>

#include "planner/simulator/mesh_sync.h"

namespace sailor::native {

struct MeshEnds {
  std::vector<double> rank_s;    // by class of ranks: backward and gradient sync done
  std::vector<double> begin_s;   // by bucket: all its ranks have started
  std::vector<double> bucket_s;  // by bucket: its last phase done
  double last_s = 0;
};

// `done_s`: end of a rank's last backward, by class of ranks. `processor_s`: additions of its processor at
// the end. Members of the buckets have the end of the backward of their layers. `sharded`: the optimizer is
// sharded, so there is one phase. `nodes`: number of node classes. Stops when the end is later than `most_s`;
// last_s is then infinite.
MeshEnds replay_mesh(const MeshSums& sums, const std::vector<double>& done_s,
                     const std::vector<double>& processor_s, int nodes, bool sharded,
                     double most_s = std::numeric_limits<double>::infinity());

// A lower bound on the end: a rank sends its buckets one after the other, and a card sends everything of its
// node's ranks.
double least_end_s(const MeshSums& sums, size_t ranks, int nodes, bool sharded);

}  // namespace sailor::native
