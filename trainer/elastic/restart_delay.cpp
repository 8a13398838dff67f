#include "trainer/elastic/restart_delay.h"

#include <algorithm>
#include <cmath>

namespace sailor {
namespace {

constexpr double kAtOnce = 2;       // ends in short succession that say nothing of a GPU
constexpr double kForgiven_s = 60;  // make up for an end
constexpr double kFirst_s = 5;      // the first wait; each is twice as long as the one before
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
