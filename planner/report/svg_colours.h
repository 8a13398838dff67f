// The colours of series in the project's pictures. Pure.
#pragma once

#include <array>
#include <cstddef>

namespace sailor {

// Distinguishable with most kinds of colour vision (Okabe and Ito), on light and on dark backgrounds.
inline constexpr std::array<const char*, 8> kChartColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                             "#e69f00", "#56b4e9", "#8c6d31", "#666666"};
inline const char* chart_colour(size_t i) {
  return kChartColours[i % kChartColours.size()];
}

}  // namespace sailor
