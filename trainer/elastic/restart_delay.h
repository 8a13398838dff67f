// The delay before a process that ended is restarted: at first none, then longer if the processes of one GPU
// end repeatedly in short succession. Earlier ends are forgotten over time, so that no GPU is given up, and a
// broken one is tried about once a minute.
//
// Times are seconds on any monotonic clock. Not thread-safe.
#pragma once

#include <map>
#include <string>
#include <utility>

namespace sailor {

class RestartDelay {
 public:
  // A process of that GPU has ended. Returns the delay before the next start; 0 = none.
  double ended(const std::string& node, int gpu, double now_s);

 private:
  struct Gpu {
    double ends = 0;  // recent ends, decaying over time
    double last_s = 0;
  };
  std::map<std::pair<std::string, int>, Gpu> gpus_;
};

}  // namespace sailor
