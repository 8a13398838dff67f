// Random changes of an arrangement of pipelines (pipeline_blocks.h): the moves of the annealing in
// improve_layout. A change can exceed the number of GPUs. The sequence of changes is the same on every
// machine, because the generator is our own and its seed is fixed. Not thread-safe.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "planner/search/improvement/pipeline_blocks.h"

namespace sailor {

class BlockMoves {
 public:
  // Changes `blocks` in place; both must outlive this.
  BlockMoves(const BlockCosts& costs, PipelineBlocks& blocks) : costs_(costs), next_(blocks) {}

  // Makes one random change; false if it had no effect or failed, and `blocks` must not be used.
  bool move();
  // Joins neighbours that have become equal; returns the total number of columns of all patterns.
  size_t tidy();
  // Random, from 0 to 1.
  double fraction() { return below(size_t{1} << 30) / static_cast<double>(size_t{1} << 30); }

 private:
  using Counts = std::vector<std::pair<int, int>>;  // option, replicas

  int below(size_t n);
  template <typename Items>
  void shuffle(Items& items);
  size_t any_block() { return below(next_.size()); }
  int any_stage() { return below(costs_.stages()); }
  std::vector<int>& any_column(size_t block);
  int any_alike(int option);
  void split(size_t block, int times);
  void split_somewhere(size_t block);
  bool other_zone();
  bool insert_column();
  bool swap_columns();
  bool swap_stages();
  bool reorder_stage();
  bool refill_stages();
  bool fill_stage(BlockCosts::Columns& columns, int stage, const std::vector<int>& options,
                  std::vector<int64_t>& left);

  const BlockCosts& costs_;
  PipelineBlocks& next_;
  uint64_t state_ = 0x9E3779B97F4A7C15ull;
};

}  // namespace sailor
