// Random changes of an arrangement of pipelines (pipeline_blocks.h): the steps that improve_layout anneals
// over. Counters may be exceeded after any of them. The same calls give the same changes everywhere. Not
// thread-safe.
#pragma once

#include <vector>

#include "planner/search/improvement/pipeline_blocks.h"
#include "planner/search/improvement/random_numbers.h"

namespace sailor {

class BlockMoves {
 public:
  // Changes `blocks` in place; both must outlive this.
  BlockMoves(const BlockCosts& costs, PipelineBlocks& blocks) : costs_(costs), next_(blocks) {}

  // One random change; false when it came to nothing, and `blocks` are not to be used.
  bool move();
  // Joins neighbours that have become equal; returns the columns of all patterns together.
  size_t tidy();
  // Random, from 0 to 1.
  double fraction() { return random_.fraction(); }

 private:
  size_t any_block();
  int any_stage();
  std::vector<int>& any_column(size_t block);
  void split(size_t block, int times);
  void split_somewhere(size_t block);
  bool other_zone();
  bool swap_columns();
  bool reorder_stage();

  const BlockCosts& costs_;
  PipelineBlocks& next_;
  RandomNumbers random_;
};

}  // namespace sailor
