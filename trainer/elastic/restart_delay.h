// When a process that ended is started again: at once, and later and later where the processes of one GPU
// end again and again in short succession. Time makes up for earlier ends, so that no GPU is ever given up,
// and one that is broken is tried about once a minute.
//
// Times are seconds on any clock that does not go back. Not thread-safe.
#pragma once

#include <map>
#include <string>
#include <utility>

namespace sailor {

class RestartDelay {
 public:
  // A process of that GPU has ended. Returns for how long to wait before the next one is started; 0 = not.
  double ended(const std::string& node, int gpu, double now_s);

 private:
  struct Gpu {
    double ends = 0;  // in short succession
    double last_s = 0;
  };
  std::map<std::pair<std::string, int>, Gpu> gpus_;
};

}  // namespace sailor
