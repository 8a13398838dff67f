// The ranks of another trainer's program on a node, as its agent runs them (agent.h) in an elastic job: it
// starts, signals and ends them when the controller says so, and reports their end. The ranks are children of
// one `sailor-agent programs` (programs.h), itself a child of the agent. Not thread-safe.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "trainer/control/control_message.h"

namespace sailor {

class AgentPrograms {
 public:
  // `report` sends a message to the controller. In a helper job the output of ranks goes to `log`.
  AgentPrograms(std::string log, std::function<void(const ProgramsReport&)> report);

  // Ranks of an earlier generation that still run are killed first. A failure to start is reported as an end.
  void start(const StartPrograms& what);
  void signal(const SignalPrograms& what);
  // Whether there were ranks to send the signal to.
  bool forward(int signal);
  // A child of this process has ended. Whether it was that of the ranks.
  bool child_ended(pid_t child, int wait_status);
  // Call often: kills ranks that have not ended in time.
  void tick();
  // tick() is needed soon.
  bool waiting() const { return kill_at_.has_value(); }

 private:
  void kill_all();
  void ended(int exit_code);

  const std::string log_;
  const std::function<void(const ProgramsReport&)> report_;
  pid_t child_ = -1;
  std::string node_;
  int generation_ = 0;
  std::optional<std::chrono::steady_clock::time_point> kill_at_;
};

}  // namespace sailor
