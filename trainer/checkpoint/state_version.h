// Which state of which training: what tells whether two ranks hold parts of one whole. Value type.
#pragma once

#include <compare>
#include <cstdint>

namespace sailor {

// Two states are parts of one whole when they are equal in both members. Steps alone do not tell: training
// that went back to an earlier step, or went on under another plan, comes to the same step with other bits.
// So the ranks of every generation draw a lineage, which the steps that they do belong to.
struct StateVersion {
  int64_t steps_done = 0;
  int64_t lineage = 0;

  auto operator<=>(const StateVersion&) const = default;
};

}  // namespace sailor
