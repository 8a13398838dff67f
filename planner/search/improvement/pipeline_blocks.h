// The ordered pipelines of a layout as a list of blocks: a short pattern of columns (the option of every
// stage of one pipeline) that is repeated. Neighbours in a stage's ring and facing replicas then follow from
// the patterns, for any number of replicas. A move changes all repetitions at once, which matters because the
// slowest pair of a stage counts: one instance more or less changes nothing.
//
// Alternating between zones helps where the links between two zones are faster than those within one. Not
// thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/search/assignment/assignment.h"

namespace sailor {

struct PipelineBlock {
  std::vector<std::vector<int>> columns;  // options by stage, as indices of BlockCosts::options
  int times = 1;
};
using PipelineBlocks = std::vector<PipelineBlock>;
constexpr size_t kLongestPattern = 8;  // columns

// The costs of one layer split, tabulated by pair of options, for any arrangement of its pipelines.
class BlockCosts {
 public:
  BlockCosts(const AssignmentProblem& problem, const Layout& layout);

  using Columns = std::vector<std::vector<int>>;  // of all pipelines, in order
  Columns columns_of(const Layout& layout) const;
  static Columns columns_of(const PipelineBlocks& blocks);
  // Finds repeated patterns.
  static PipelineBlocks blocks_of(const Columns& columns);
  Layout layout_of(const PipelineBlocks& blocks) const;

  int stages() const { return stages_; }
  int num_options() const { return static_cast<int>(options_.size()); }
  int index_of(int option) const;
  // Options that differ from this one only in their zone, itself included.
  const std::vector<int>& alike(int option) const { return alike_[option]; }
  // Is there a choice at all?
  bool open() const;

  // GPUs by counter, of the counters that the options use.
  const std::vector<int64_t>& capacity() const { return capacity_; }
  void take(int option, int64_t replicas, std::vector<int64_t>& left) const;
  // The number of replicas with this option that fit.
  int64_t most(int option, const std::vector<int64_t>& left) const;
  // The excess over the counters, each relative to its capacity; 0 if all suffice.
  double excess(const PipelineBlocks& blocks) const;
  // Repeats the patterns, each at least once, so that all pipelines fit; false if that was not found, and the
  // blocks must not be used.
  bool recount(PipelineBlocks& blocks) const;
  struct Score {
    LayoutValue value;
    // The same with smooth maxima over the pairs of a stage or boundary: of two arrangements with the same
    // slowest pair, the one with fewer instances of it, and of others nearly as slow, has a lower value.
    LayoutValue smooth;
  };
  Score score(const PipelineBlocks& blocks);

 private:
  // Times and charges of pairs of options; seconds also as a power.
  struct Ring {  // neighbours
    double sync_s = 0, sync_power = 0, sync_charge = 0;
  };
  struct Boundary {  // facing each other
    double activation_s = 0, activation_power = 0, gradient_s = 0, gradient_power = 0, message_charge = 0;
  };

  size_t at(int stage, int a, int b) const {
    return (static_cast<size_t>(stage) * options_.size() + a) * options_.size() + b;
  }

  const AssignmentProblem& p_;
  int stages_;
  Layout cut_;  // stages without runs
  std::vector<int> options_;
  std::vector<std::vector<int>> alike_;
  std::vector<int64_t> capacity_;       // by counter
  std::vector<std::vector<int>> uses_;  // by option and counter
  std::vector<StageParts> fixed_;       // compute and update
  std::vector<double> charge_per_s_;    // by option
  std::vector<double> work_charge_;     // [stage][option], of one replica
  std::vector<Ring> rings_;             // [stage][option][option], as the next
  std::vector<Boundary> boundaries_;    // after the stage
  std::vector<StageParts> times_, smooth_;
};

}  // namespace sailor
