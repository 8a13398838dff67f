#include "trainer/launch/agent.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <utility>

#include "planner/process/program_path.h"
#include "planner/process/scratch_directory.h"
#include "planner/process/subprocess.h"
#include "trainer/control/control_client.h"
#include "trainer/control/job_secrets.h"
#include "trainer/launch/agent_programs.h"
#include "trainer/launch/helper_job.h"
#include "trainer/launch/requeue.h"
#include "trainer/process/signals.h"

namespace sailor {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kKill_s = 3;  // between SIGTERM and SIGKILL
constexpr double kControllerWait_s = 30;
constexpr double kRequeuePatience_s = 3600;  // Slurm takes minutes to see that a node is lost
// Grace period of a leaving node: Slurm's KillWait is 30 s.
constexpr double kAgentLeave_s = 25;

// Seconds that this node has, which was told to leave: SAILOR_GRACE_S if it is set. Helper jobs ask the
// scheduler: for them one agent does so, and not one of every node.
double leave_s() {
  const char* text = std::getenv("SAILOR_GRACE_S");
  if (text && std::atof(text) > 0) return std::atof(text);
  return in_helper_job() ? time_to_leave_s(site_scheduler(), std::time(nullptr), kAgentLeave_s)
                         : kAgentLeave_s;
}

// Passes the controller's requests from the control channel's thread to the agent's thread.
class Orders {
 public:
  void put(const ControlMessage& message) {
    if (std::holds_alternative<Lease>(message)) return;
    {
      const std::lock_guard lock(mutex_);
      waiting_.push_back(message);
    }
    wake_.notify();
  }
  void end() {
    end_ = true;
    wake_.notify();
  }
  void lease_expired() {
    alone_ = true;
    end();
  }
  bool alone() const { return alone_; }  // the controller is gone
  bool must_end() const { return end_; }
  std::vector<ControlMessage> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(waiting_, {});
  }
  SelfPipe& wake() { return wake_; }

 private:
  SelfPipe wake_;
  std::mutex mutex_;
  std::vector<ControlMessage> waiting_;
  std::atomic<bool> end_ = false, alone_ = false;
};

std::string run_directory() {
  const char* directory = std::getenv("SAILOR_RUN_DIRECTORY");
  if (!directory)
    throw std::runtime_error("SAILOR_RUN_DIRECTORY is not set: this program is started by sailor run");
  return directory;
}

void carry_out(const ControlMessage& order, AgentPrograms& programs) {
  if (const auto* begin = std::get_if<StartPrograms>(&order)) {
    programs.start(*begin);
  } else if (const auto* signal = std::get_if<SignalPrograms>(&order)) {
    programs.signal(*signal);
  } else if (const auto* end = std::get_if<EndProcess>(&order)) {
    for (const pid_t child : child_processes()) {
      if (child == end->pid) kill(child, SIGKILL);  // own children only: pids are reused
    }
  } else if (const auto* start = std::get_if<StartProcess>(&order)) {
    try {
      start_joining_rank(*start);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "sailor-agent: %s\n", error.what());
    }
  }
}

}  // namespace

pid_t start_joining_rank(const StartProcess& what) {
  const std::string log =
      run_directory() + "/logs/rank-" + what.place + "-" + std::to_string(what.gpu) + ".log";
  return spawn({program_path("sailor-rank"), "--join"},
               {.environment = {{"SAILOR_JOIN_PLACE", what.place},
                                {"SAILOR_JOIN_GPU", std::to_string(what.gpu)},
                                {"SAILOR_JOIN_PARENT", std::to_string(getpid())}},
                .output_file = log});
}

std::string node_name() {
  if (std::string node = site_scheduler().own_node(); !node.empty()) return node;
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  return host.data();
}

int run_agent(const std::vector<std::string>& command) {
  become_subreaper();
  SignalDescriptor signals({SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2});
  const ControlEndpoint endpoint =
      ControlEndpoint::from_environment(read_job_secrets(run_directory()).control_client_key);
  const ControlRoute route = find_control_route(endpoint, kControllerWait_s);
  const bool elastic = std::getenv("SAILOR_ELASTIC") != nullptr;
  const bool saves = std::getenv("SAILOR_SAVES") != nullptr;
  Orders orders;
  ControlClient control(
      endpoint, route.controller_address,
      {.lease_expired =
           [&orders] {
             std::fputs("sailor-agent: the controller is gone; ending the ranks of this node\n", stderr);
             orders.lease_expired();
           },
       .stop = [&orders](const Stop&) { orders.end(); },
       .message = [&orders](const ControlMessage& message) { orders.put(message); }});
  // Open MPI's daemon clears its session directory when it starts, and with it those of daemons that are
  // starting on this host for the same job: nodes that share a host and a directory sometimes fail.
  std::optional<ScratchDirectory> scratch{std::in_place};
  const pid_t daemon = spawn(command, {.environment = {{"TMPDIR", scratch->path()}}});
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

  AgentPrograms programs(run_directory() + "/logs/programs-" + node + ".log",
                         [&control](const ProgramsReport& report) { control.send(report); });
  bool all_well = true;
  bool end = false;
  std::optional<Clock::time_point> leave_by;  // set when this node must leave
  while (true) {
    int status = 0;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
      if (status != 0) all_well = false;
      if (pid == daemon) {
        scratch.reset();  // now, because an agent that is killed later cannot
      } else if (!programs.child_ended(pid, status)) {
        control.send(ProcessEnded{node, pid, status});
      }
    }
    programs.tick();
    const bool no_children = pid < 0;
    if (no_children && (!elastic || end || orders.must_end())) break;
    const bool timed = leave_by || programs.waiting();
    for (const int number : wait_for_signals(signals, orders.wake(), timed ? 200 : -1)) {
      if (asks_to_continue(number) && programs.forward(number)) continue;  // theirs to interpret
      if (number != SIGCHLD && (elastic || saves)) {
        if (leave_by) continue;  // Slurm signals all processes, and srun forwards it
        const double time_s = leave_s();
        leave_by =
            Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(time_s));
        control.send(Leaving{node, time_s, asks_to_continue(number)});
      } else if (number != SIGCHLD) {
        end = true;
      }
    }
    for (const ControlMessage& order : orders.take()) carry_out(order, programs);
    if (end || orders.must_end() || (leave_by && Clock::now() > *leave_by)) {
      // Ranks exit on a stop; this ends those that cannot.
      end_all_children(kKill_s);
      break;
    }
  }
  if (elastic && orders.alone()) requeue_lost_job(site_scheduler(), kRequeuePatience_s);
  return all_well || elastic ? 0 : 1;
}

}  // namespace sailor
