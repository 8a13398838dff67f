// Replacement processes for GPUs whose process has ended: those to start later (restart_delay.h), those that
// are starting, and those that never joined. A process that does not join in time has ended early or hangs.
// It becomes due again; the delay limits the rate of failing starts. If it joins late, there are two
// processes, and the second one to join is refused.
//
// The owner starts processes. Times are seconds on any monotonic clock. Not thread-safe.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "trainer/control/control_message.h"
#include "trainer/elastic/restart_delay.h"

namespace sailor {

class ProcessStarts {
 public:
  // A GPU's process has ended, or did not join. Returns the seconds until due() lists it; 0 = the caller
  // starts it now.
  double wanted(const StartProcess& what, double now_s);
  // A process was started.
  void started(const StartProcess& what, double now_s);
  // A process of that GPU has joined.
  void joined(const std::string& place, int gpu) { on_their_way_.erase({place, gpu}); }

  // Returns and removes the processes whose delay is over; the caller starts them. `hurry`: training waits
  // for one of them.
  std::vector<StartProcess> due(double now_s, bool hurry);
  // Returns and removes the processes that did not join in time; the caller requests them again.
  std::vector<StartProcess> never_came(double now_s);
  // Is a process starting that may join soon?
  bool any_expected(double now_s) const;

 private:
  using Gpu = std::pair<std::string, int>;
  struct Later {
    StartProcess what;
    double ended_s = 0;  // the previous process
    double at_s = 0;
  };
  struct Started {
    StartProcess what;
    double since_s = 0;
  };
  RestartDelay delay_;
  std::map<Gpu, Later> later_;
  std::map<Gpu, Started> on_their_way_;
};

}  // namespace sailor
