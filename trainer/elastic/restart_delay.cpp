#include "trainer/elastic/restart_delay.h"

#include <algorithm>
#include <cmath>

namespace sailor {
namespace {

constexpr double kAtOnce = 2;       // ends in short succession that are not attributed to the GPU
constexpr double kForgiven_s = 60;  // after which one end is forgotten
constexpr double kFirst_s = 5;      // first delay; doubles each time
constexpr double kLongest_s = 60;

}  // namespace

double RestartDelay::ended(const std::string& node, int gpu, double now_s) {
  Gpu& one = gpus_[{node, gpu}];
  one.ends = std::max(0.0, one.ends - (now_s - one.last_s) / kForgiven_s) + 1;
  one.last_s = now_s;
  if (one.ends <= kAtOnce) return 0;
  return std::min(kLongest_s, kFirst_s * std::exp2(std::ceil(one.ends - kAtOnce) - 1));
}

}  // namespace sailor
