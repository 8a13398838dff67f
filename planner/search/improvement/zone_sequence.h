// The pipelines of a layout as a sequence: every pipeline is a column (an option for each stage), and only
// some columns may be next to each other. Looks for a sequence of D columns within the capacities. Where
// zones are exactly full it takes several columns at once to get from one arrangement to another, which
// single moves cannot; a linear program over how often each column is used can.
//
// Depth first over which columns come in which order, led and cut short by the linear program of what may
// still follow (zone_program.h); then how often each is repeated, in whole numbers. Deterministic.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace sailor {

struct SequenceProblem {
  std::vector<std::vector<int>> uses;     // by column and counter
  std::vector<std::vector<char>> behind;  // [a][b]: may column b follow column a?
  std::vector<int64_t> capacity;          // by counter
  int pipelines = 1;
};
struct SequenceStep {
  int column = 0;
  int times = 1;
};
using ZoneSequence = std::vector<SequenceStep>;

// `effort`: as ZoneProgram::work, what may still be computed; counted down. Nothing when there is none,
// and when the effort is spent.
std::optional<ZoneSequence> find_sequence(const SequenceProblem& problem, int64_t& effort);

}  // namespace sailor
