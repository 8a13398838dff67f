// The processes that are started for GPUs whose own has ended: which are to be started later
// (restart_delay.h), which are on their way, and which never came. One that has not joined in time has ended
// before it could, or hangs: it is due again, and the delay makes starts that keep failing seldom. Should it
// come after all, there are two, and the second one to say hello is refused.
//
// Starting is the owner's. Times are seconds on any clock that does not go back. Not thread-safe.
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
  // A GPU's process has ended, or did not come. Returns in how many seconds due() will name it; 0 = now, and
  // the caller starts it.
  double wanted(const StartProcess& what, double now_s);
  // It was started.
  void started(const StartProcess& what, double now_s);
  // A process of that GPU is there.
  void joined(const std::string& place, int gpu) { on_their_way_.erase({place, gpu}); }

  // Waited long enough; `hurry`: nothing trains until one is there. They are forgotten: the caller starts
  // them.
  std::vector<StartProcess> due(double now_s, bool hurry);
  // Started and not there in time; they are forgotten: the caller wants them again.
  std::vector<StartProcess> never_came(double now_s);
  // Is one on its way that may come soon?
  bool any_expected(double now_s) const;

 private:
  using Gpu = std::pair<std::string, int>;
  struct Later {
    StartProcess what;
    double ended_s = 0;  // the process before it
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
