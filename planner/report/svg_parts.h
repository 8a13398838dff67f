// What the charts share: colours and an axis. Internal to pictures; pure.
#pragma once

#include <array>
#include <cstddef>

namespace sailor {

// Distinct for most kinds of colour vision (Okabe and Ito), on light and on dark backgrounds.
inline constexpr std::array<const char*, 8> kChartColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                             "#e69f00", "#56b4e9", "#8c6d31", "#666666"};
inline const char* chart_colour(size_t i) {
  return kChartColours[i % kChartColours.size()];
}

// An axis from 0 to a little beyond the largest value, with about five round marks.
struct RoundAxis {
  double end, step;

  explicit RoundAxis(double largest);
  double along(double value) const { return value / end; }  // 0 at the origin, 1 at the end
};

}  // namespace sailor
