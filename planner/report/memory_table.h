// Memory of one GPU of each stage, by source. Pure.
#pragma once

#include <span>
#include <string>

#include "planner/plan/plan.h"
#include "planner/simulator/prediction.h"

namespace sailor {

struct MemorySource {
  const char* name;
  const char* heading;  // of a narrow column
  int64_t MemoryBreakdown::*bytes;
};
// All of them, in the order of the breakdown; their sum is its total().
std::span<const MemorySource> memory_sources();

// Unit of memory: GiB, or MiB if no GPU uses 1 GiB.
struct MemoryUnit {
  const char* name;
  double bytes;

  std::string text(int64_t amount) const;  // two decimals, without the name
};
MemoryUnit memory_unit(const Prediction& prediction);

// A row per stage. Equal pipelines share their rows, and so do the entries of an interleaved plan on the same
// GPUs. Fixed columns, at most 110 columns wide; the last line has the unit.
std::string memory_table(const Plan& plan, const Prediction& prediction);

}  // namespace sailor
