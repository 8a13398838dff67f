// The row of a stage in the timeline picture: bars if they are wide enough, else fractions of time.
#pragma once

#include <string>
#include <vector>

#include "planner/simulator/timeline.h"

namespace sailor {

struct SvgRowScale {
  double left = 0;   // px of time 0
  double per_s = 1;  // px
  double top = 0;
  double height = 10;
  bool titles = true;  // a tooltip for each bar
};

// Appends the row's elements to `out`. Returns whether it shows fractions of time instead of bars.
bool svg_row(const std::vector<const TimelineEvent*>& events, int chunks, const SvgRowScale& scale,
             std::string& out);

}  // namespace sailor
