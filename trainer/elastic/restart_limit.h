// Whether a process that ended is started again: yes, until the same GPU has lost too many in too short a
// time. Pure; times are seconds on any clock that does not go back.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <utility>

namespace sailor {

class RestartLimit {
 public:
  explicit RestartLimit(size_t crashes = 3, double within_s = 600) : crashes_(crashes), within_s_(within_s) {}

  // A process of that GPU has ended. Returns whether another one is worth while.
  bool ended(const std::string& node, int gpu, double now_s) {
    std::deque<double>& ends = ends_[{node, gpu}];
    ends.push_back(now_s);
    while (ends.front() < now_s - within_s_) ends.pop_front();
    return ends.size() < crashes_;
  }

 private:
  size_t crashes_;
  double within_s_;
  std::map<std::pair<std::string, int>, std::deque<double>> ends_;
};

}  // namespace sailor
