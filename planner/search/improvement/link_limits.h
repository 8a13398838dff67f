// What an arrangement of a cut's pipelines takes depends on a few maxima only: the slowest activation and the
// slowest gradient over each boundary, and the slowest link of all rings that sum gradients. Limits on these
// say which columns (an option for each stage: one pipeline) there may be, and which may stand behind each
// other. There are few limits worth setting, one for each pair of zones. Immutable once built.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/search/improvement/pipeline_blocks.h"
#include "planner/search/improvement/zone_sequence.h"

namespace sailor {

class LinkLimits {
 public:
  // Which of the seconds() each limit is: activation and gradient of the first boundary, of the second, ...,
  // at last that of the sums.
  using Limits = std::vector<int>;

  // How many columns a cut has; they are all listed, so there must not be too many.
  static size_t columns(const BlockCosts& costs);
  // Both must outlive this.
  LinkLimits(const AssignmentProblem& problem, const BlockCosts& costs);

  size_t size() const { return seconds_.size(); }
  const std::vector<double>& seconds(size_t limit) const { return seconds_[limit]; }  // ascending
  // Seconds per iteration of an arrangement that reaches all limits.
  double iteration_s(const Limits& limits) const;
  // Do enough pipelines fit, in any order and in fractions? A few may be of columns that can only be used
  // once, on the way from one to another. `effort` as in zone_sequence.h.
  bool possible(const Limits& limits, int64_t& effort) const;
  // Columns by number; `often`: only those that can be used any number of times.
  std::vector<int> within(const Limits& limits, bool often) const;
  SequenceProblem sequence_over(const std::vector<int>& columns, const Limits& limits) const;
  const std::vector<int>& options(int column) const { return columns_[column]; }  // by stage

 private:
  size_t sums() const { return seconds_.size() - 1; }
  void list_seconds();
  void list_columns();
  void list_uses();
  std::vector<double> round_trips(int stage) const;
  int index_of(size_t limit, double time_s) const;

  const AssignmentProblem& p_;
  const BlockCosts& costs_;
  const int stages_;
  std::vector<std::vector<double>> seconds_;
  std::vector<std::vector<int>> columns_;
  std::vector<Limits> needs_;           // by column: the least limits that allow it
  std::vector<int64_t> capacity_;       // by counter that columns use
  std::vector<std::vector<int>> uses_;  // distinct, by counter
  std::vector<size_t> use_of_;          // by column
};

}  // namespace sailor
