#include "trainer/launch/programs.h"

#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <optional>

#include "planner/plan/plan_json.h"
#include "planner/plan/rank_layout.h"
#include "planner/process/program_path.h"
#include "planner/process/subprocess.h"
#include "planner/spec/error.h"
#include "planner/spec/quantity.h"
#include "trainer/launch/free_port.h"
#include "trainer/launch/rank_environment.h"
#include "trainer/launch/silent_nodes.h"
#include "trainer/process/signals.h"

namespace sailor {
namespace {

using Clock = std::chrono::steady_clock;

// Inside a node, between a request to end and SIGKILL, for ranks beside one that failed.
constexpr double kGraceOfNode_s = 20;
constexpr int kPoll_ms = 100;

bool resolves(const std::string& name) {
  addrinfo* found = nullptr;
  if (getaddrinfo(name.c_str(), nullptr, nullptr, &found) != 0) return false;
  freeaddrinfo(found);
  return true;
}

// At which the others reach the node: its name where that is known to the resolver, else what the scheduler
// says.
std::string address_of(Scheduler& scheduler, const std::string& node) {
  if (resolves(node)) return node;
  const std::optional<NodeInfo> known = scheduler.find_node(node);
  return known && !known->address.empty() ? known->address : node;
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

int own_processors() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

RendezvousPoint meeting_of(Scheduler& scheduler, const ProgramLaunch& launch) {
  const std::string job = launch.allocation.job_id;
  return {address_of(scheduler, nodes_in_order(RankLayout(launch.plan), launch.order).front()),
          launch.port > 0 ? launch.port : rendezvous_port(job), job, launch.plan_file};
}

// What the user has set stays.
void keep_threads(std::map<std::string, std::string>& environment) {
  if (std::getenv("OMP_NUM_THREADS") != nullptr) environment.erase("OMP_NUM_THREADS");
}

class Steps {
 public:
  explicit Steps(Scheduler& scheduler) : scheduler_(scheduler) {}

  void start(const StepSpec& step) { running_.push_back(scheduler_.start_step(step)); }
  void signal(int number) {
    for (const StepId step : running_) scheduler_.signal_step(step, number);
  }
  bool any() const { return !running_.empty(); }
  // Exit code of one that failed; 0 if none did since the last call.
  int reap() {
    int code = 0;
    std::erase_if(running_, [&](StepId step) {
      const std::optional<int> end = scheduler_.step_end(step);
      if (end && code == 0) code = exit_code_of(*end);
      return end.has_value();
    });
    return code;
  }

 private:
  Scheduler& scheduler_;
  std::vector<StepId> running_;
};

}  // namespace

NodePrograms node_programs(Scheduler& scheduler, const ProgramLaunch& launch) {
  RendezvousPoint meeting = meeting_of(scheduler, launch);
  // All ranks are told the port. Connections of an earlier generation, and a job of the same number on
  // another cluster, may hold the one that follows from the job.
  if (launch.port == 0)
    meeting.port =
        free_port(meeting.address,
                  rendezvous_port(fmt::format("{}.{}.{}", meeting.run_id, launch.generation, getpid())));
  NodePrograms programs{
      {program_path("sailor-agent"), "programs"},
      {{"SAILOR_PLAN", launch.plan_file},
       {"SAILOR_RANK_ORDER", FrameworkStyle::kRankOrders[static_cast<size_t>(launch.order)]},
       {"MASTER_ADDR", meeting.address},
       {"MASTER_PORT", std::to_string(meeting.port)},
       {"TORCHELASTIC_RUN_ID", meeting.run_id},
       {"TORCHELASTIC_RESTART_COUNT", std::to_string(launch.generation - 1)}}};
  programs.command.insert(programs.command.end(), launch.command.begin(), launch.command.end());
  if (!launch.steps_directory.empty()) programs.environment["SAILOR_STEPS"] = launch.steps_directory;
  if (!launch.change_file.empty()) programs.environment["SAILOR_CHANGE"] = launch.change_file;
  return programs;
}

int launch_programs(Scheduler& scheduler, const ProgramLaunch& launch,
                    const std::function<void()>& meanwhile) {
  const RankLayout layout(launch.plan);
  const NodePrograms programs = node_programs(scheduler, launch);
  for (const std::string& node : layout.nodes())
    if (!launch.allocation.find(node))
      throw std::runtime_error(
          fmt::format("node {} does not belong to job {}", node, launch.allocation.job_id));
  SignalDescriptor signals({SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2});
  scheduler.forget_step_defaults();
  Steps steps(scheduler);
  std::vector<AllocatedNode> nodes;
  for (const std::string& node : layout.nodes()) {
    nodes.push_back(*launch.allocation.find(node));
    steps.start({nodes.back(), programs.command, programs.environment});
  }
  const auto grace =
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(launch.grace_s));
  int code = 0;
  bool told = false;
  std::optional<Clock::time_point> kill_at;
  const auto pass_on_signals = [&] {
    for (const int signal : signals.take()) {
      if (signal == SIGCHLD) continue;
      steps.signal(signal);
      if (asks_to_continue(signal)) continue;
      told = true;
      if (!kill_at) kill_at = Clock::now() + grace;
    }
  };
  while (steps.any()) {
    pollfd waiting{signals.descriptor(), POLLIN, 0};
    poll(&waiting, 1, kPoll_ms);
    meanwhile();
    pass_on_signals();
    if (const int failed = steps.reap(); failed != 0 && code == 0) {
      code = failed;
      steps.signal(SIGTERM);
      if (!kill_at) kill_at = Clock::now() + grace;
    }
    if (kill_at && Clock::now() > *kill_at) steps.signal(SIGKILL);
  }
  if (code != 0)
    wait_for_silent_nodes(scheduler, nodes,
                          {[&] {
                             pass_on_signals();
                             return told;
                           },
                           launch.say});
  return code;
}

int run_programs_of_node(const std::string& node, const std::vector<std::string>& command) {
  const std::string plan_file = variable("SAILOR_PLAN");
  const std::optional<double> port = parse_number(variable("MASTER_PORT"));
  if (plan_file.empty() || !port) throw InputError("sailor-agent programs: is started by sailor launch");
  const auto order = variable("SAILOR_RANK_ORDER") == FrameworkStyle::kRankOrders[1]
                         ? FrameworkStyle::RankOrder::stages
                         : FrameworkStyle::RankOrder::pipelines;
  become_subreaper();  // nothing that a rank has started outlives this process
  // Nor does it outlive its agent or step: the signal wakes the loop below.
  const pid_t parent = getppid();
  prctl(PR_SET_PDEATHSIG, SIGCHLD);
  SignalDescriptor signals({SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2});
  const RendezvousPoint meeting{variable("MASTER_ADDR"), static_cast<int>(*port),
                                variable("TORCHELASTIC_RUN_ID"), plan_file};
  std::vector<pid_t> ranks;
  for (std::map<std::string, std::string>& environment : rank_environments(
           load_plan(plan_file), order, node, meeting, variable("CUDA_VISIBLE_DEVICES"), own_processors())) {
    keep_threads(environment);
    ranks.push_back(spawn(command, {.environment = std::move(environment)}));
  }
  if (ranks.empty()) throw std::runtime_error(fmt::format("the plan has no rank on node {}", node));
  int code = 0;
  while (!ranks.empty() && code == 0) {
    if (getppid() != parent) code = kFailed;
    pollfd waiting{signals.descriptor(), POLLIN, 0};
    if (code == 0) poll(&waiting, 1, -1);
    for (const int signal : signals.take())
      if (signal != SIGCHLD)
        for (const pid_t rank : ranks) kill(rank, signal);
    int status = 0;
    for (pid_t ended = waitpid(-1, &status, WNOHANG); ended > 0; ended = waitpid(-1, &status, WNOHANG)) {
      if (std::erase(ranks, ended) > 0 && code == 0) code = exit_code_of(status);
    }
  }
  end_all_children(code == 0 ? 0 : kGraceOfNode_s);
  return code;
}

void become_rank(Scheduler& scheduler, const ProgramLaunch& launch, const std::string& node, int local_rank) {
  auto environments = rank_environments(launch.plan, launch.order, node, meeting_of(scheduler, launch),
                                        variable("CUDA_VISIBLE_DEVICES"), own_processors());
  if (local_rank < 0 || local_rank >= static_cast<int>(environments.size()))
    throw std::runtime_error(fmt::format("node {}: this is its task {}, but the plan has {} ranks there",
                                         node, local_rank + 1, environments.size()));
  std::map<std::string, std::string>& environment = environments[static_cast<size_t>(local_rank)];
  keep_threads(environment);
  for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
  become_program(launch.command);
}

}  // namespace sailor
