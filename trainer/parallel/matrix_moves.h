// Where each weight matrix is worked on as a whole, and which elements travel there and back, when several
// ranks hold parts of it or copies of parts. The same on every rank. Pure.
//
// One rank owns a matrix: of those that hold some of it the one with the least work so far, largest matrices
// first, so that the work of a layer is divided among all pipelines and GPUs that have it, and replicas get
// the same result.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/plan/rank_layout.h"

namespace sailor {

// A range of elements of a matrix, which a rank holds from an element of one of its slices on.
struct MatrixRange {
  int rank = 0;
  std::size_t slice = 0;  // index of the rank's own
  int64_t offset = 0;     // element of the slice
  int64_t first = 0;      // element of the matrix
  int64_t count = 0;
};

struct MatrixMoves {
  std::size_t matrix = 0;
  int owner = 0;
  std::vector<MatrixRange> gathered;  // to the owner: every element of the matrix once
  std::vector<MatrixRange> returned;  // from the owner: every range that some rank holds
};

// Of matrices with `work` (any unit) and the ranges that ranks hold of each, which cover it. A round has at
// most one matrix of each owner. Owners gather from themselves and from their node first.
std::vector<std::vector<MatrixMoves>> plan_matrix_moves(const RankLayout& layout,
                                                        const std::vector<double>& work,
                                                        const std::vector<std::vector<MatrixRange>>& held);

}  // namespace sailor
