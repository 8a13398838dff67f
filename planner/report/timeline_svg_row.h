// One stage's row of the timeline picture: bars where they can be told apart, shares of time where not.
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
  bool titles = true;  // a text for each bar that shows when it is pointed at
};

// Appends the row's elements to `out`. Returns whether it shows shares of time instead of bars.
bool svg_row(const std::vector<const TimelineEvent*>& events, int chunks, const SvgRowScale& scale,
             std::string& out);

}  // namespace sailor
