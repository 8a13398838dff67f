// When a process that ended is started again: at once, and later and later where the processes of one GPU
// end again and again. What lived for long has made up for earlier ends, so that a GPU is never given up for
// faults that came from outside, and one that is broken costs less and less.
//
// Times are seconds on any clock that does not go back. Not thread-safe.
#pragma once

#include <map>
#include <string>
#include <utility>

namespace sailor {

class RestartDelay {
 public:
  // A process of that GPU is ready.
  void joined(const std::string& node, int gpu, double now_s);
  // It has ended, or was never ready. Returns for how long to wait before the next one is started; 0 = not.
  double ended(const std::string& node, int gpu, double now_s);

 private:
  struct Gpu {
    double ends = 0;       // in short succession
    double joined_s = -1;  // of the process that runs; below 0 = none
  };
  std::map<std::pair<std::string, int>, Gpu> gpus_;
};

}  // namespace sailor
