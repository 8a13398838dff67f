#include "trainer/elastic/agent.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "trainer/elastic/control_client.h"
#include "trainer/elastic/scratch_directory.h"
#include "trainer/elastic/signals.h"
#include "trainer/elastic/subprocess.h"

namespace sailor {
namespace {

constexpr double kGrace_s = 3;  // between SIGTERM and SIGKILL
constexpr double kControllerWait_s = 30;

}  // namespace

std::string node_name() {
  if (const char* node = std::getenv("SLURMD_NODENAME"); node && *node) return node;
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  return host.data();
}

int run_agent(const std::vector<std::string>& command) {
  become_subreaper();
  SignalDescriptor signals({SIGCHLD, SIGTERM, SIGINT, SIGHUP});
  const ControlEndpoint endpoint = ControlEndpoint::from_environment();
  const ControlRoute route = find_control_route(endpoint, kControllerWait_s);
  std::atomic<bool> end = false;
  SelfPipe wake;
  auto end_now = [&end, &wake] {
    end = true;
    wake.notify();
  };
  ControlClient control(
      endpoint, route.controller_address,
      {.lease_expired =
           [&end_now] {
             std::fputs("sailor-agent: the controller is gone; ending the ranks of this node\n", stderr);
             end_now();
           },
       .stop = [&end_now](const Stop&) { end_now(); }});
  // Open MPI's daemon clears its session directory when it starts, and with it those of others that are just
  // starting on this host for the same job: nodes that share a host, in one directory, sometimes fail.
  const ScratchDirectory scratch;
  const pid_t daemon = spawn(command, {.environment = {{"TMPDIR", scratch.path()}}});
  const std::string node = node_name();
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  const char* step_pid = std::getenv("SAILOR_STEP_PID");
  control.send(Hello{.role = ControlRole::agent,
                     .node = node,
                     .host = host.data(),
                     .pid = getpid(),
                     .generation = 1,
                     .step_pid = step_pid ? std::atoll(step_pid) : 0});

  bool all_well = true;
  while (true) {
    int status = 0;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
      if (status != 0) all_well = false;
      if (pid != daemon) control.send(ProcessEnded{node, pid, status});
    }
    if (pid < 0) break;  // no children left
    for (const int number : wait_for_signals(signals, wake)) {
      if (number != SIGCHLD) end = true;
    }
    if (end) {
      // Ranks end by themselves on a stop; this is for those that cannot.
      end_all_children(kGrace_s);
      break;
    }
  }
  return all_well ? 0 : 1;
}

}  // namespace sailor
