#include "trainer/elastic/process_starts.h"

#include <algorithm>

namespace sailor {
namespace {

constexpr double kComesWithin_s = 60;  // for a started process to join
constexpr double kExpected_s = 10;     // changes of plan wait this long for it
constexpr double kHurry_s = 3;         // before a restart while training waits

}  // namespace

double ProcessStarts::wanted(const StartProcess& what, double now_s) {
  const double wait_s = delay_.ended(what.place, what.gpu, now_s);
  if (wait_s > 0) later_[{what.place, what.gpu}] = {what, now_s, now_s + wait_s};
  return wait_s;
}

void ProcessStarts::started(const StartProcess& what, double now_s) {
  later_.erase({what.place, what.gpu});
  on_their_way_[{what.place, what.gpu}] = {what, now_s};
}

std::vector<StartProcess> ProcessStarts::due(double now_s, bool hurry) {
  std::vector<StartProcess> out;
  std::erase_if(later_, [&](const auto& entry) {
    const Later& one = entry.second;
    if (now_s < (hurry ? std::min(one.at_s, one.ended_s + kHurry_s) : one.at_s)) return false;
    out.push_back(one.what);
    return true;
  });
  return out;
}

std::vector<StartProcess> ProcessStarts::never_came(double now_s) {
  std::vector<StartProcess> out;
  std::erase_if(on_their_way_, [&](const auto& entry) {
    if (now_s <= entry.second.since_s + kComesWithin_s) return false;
    out.push_back(entry.second.what);
    return true;
  });
  return out;
}

bool ProcessStarts::any_expected(double now_s) const {
  return std::any_of(on_their_way_.begin(), on_their_way_.end(),
                     [&](const auto& entry) { return now_s < entry.second.since_s + kExpected_s; });
}

}  // namespace sailor
