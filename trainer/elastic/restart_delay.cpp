#include "trainer/elastic/restart_delay.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace sailor {
namespace {

constexpr double kAtOnce = 2;       // ends in short succession that say nothing of a GPU
constexpr double kForgiven_s = 60;  // of life make up for an end
constexpr double kFirst_s = 5;      // the first wait; each is twice as long as the one before
constexpr double kLongest_s = 600;

}  // namespace

void RestartDelay::joined(const std::string& node, int gpu, double now_s) {
  gpus_[{node, gpu}].joined_s = now_s;
}

double RestartDelay::ended(const std::string& node, int gpu, double now_s) {
  Gpu& one = gpus_[{node, gpu}];
  const double joined_s = std::exchange(one.joined_s, -1);
  const double lived_s = joined_s < 0 ? 0 : now_s - joined_s;
  one.ends = std::max(0.0, one.ends - lived_s / kForgiven_s) + 1;
  if (one.ends <= kAtOnce) return 0;
  return std::min(kLongest_s, kFirst_s * std::exp2(std::ceil(one.ends - kAtOnce) - 1));
}

}  // namespace sailor
