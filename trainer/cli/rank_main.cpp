// sailor-rank: one trainer rank. mpirun (or the agent, local_ranks.h) starts it; it bootstraps, detaches, and
// trains under the controller's lease. Everything it needs to know comes from its environment (sailor run
// sets it) and from the run directory. `sailor-rank --join` comes later, from an agent: it joins a running
// job.
#include <ATen/Parallel.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <optional>
#include <thread>

#include "planner/plan/plan_json.h"
#include "planner/plan/rank_layout.h"
#include "planner/spec/error.h"
#include "trainer/cli/rank_process.h"
#include "trainer/comm/bootstrap.h"
#include "trainer/comm/host_memory.h"
#include "trainer/control/control_client.h"
#include "trainer/control/job_secrets.h"
#include "trainer/launch/agent.h"
#include "trainer/launch/rank_assignment.h"
#include "trainer/launch/rank_identity.h"
#include "trainer/model/torch_device.h"
#include "trainer/pipeline/tensor_cache.h"
#include "trainer/process/detached_start.h"
#include "trainer/process/process_identity.h"
#include "trainer/process/signals.h"
#include "trainer/topology/gpu_environment.h"

namespace {

using namespace sailor;

constexpr double kControllerWait_s = 30;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  if (!value)
    throw std::runtime_error(fmt::format("{} is not set: this program is started by sailor run", name));
  return value;
}

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

// What this process learned in the bootstrap: who is in the first generation, and which rank it is.
struct FirstGeneration {
  Generation generation;
  RankSlot slot;
};

FirstGeneration meet(const Plan& plan, const Endpoint& own, bool local) {
  const BootstrapResult world = bootstrap(to_text(RankCard{own, node_name(), getpid()}));
  std::vector<RankCard> cards;
  std::vector<std::string> nodes;
  for (const std::string& text : world.cards) {
    cards.push_back(parse_rank_card(text));
    nodes.push_back(cards.back().node);
  }
  std::vector<int> rank_of;
  if (local) {
    for (int i = 0; i < world.size; ++i) rank_of.push_back(i);
  } else {
    rank_of = assign_ranks(plan, nodes);
  }
  FirstGeneration first{.generation = {.number = 1, .base = 1, .plan = plan}, .slot = {}};
  first.generation.ranks.resize(cards.size());
  for (size_t i = 0; i < cards.size(); ++i)
    first.generation.ranks[static_cast<size_t>(rank_of[i])] = {
        cards[i].node, cards[i].pid, cards[i].endpoint.host, cards[i].endpoint.port};
  first.slot = RankLayout(plan).slots().at(static_cast<size_t>(rank_of[static_cast<size_t>(world.rank)]));
  return first;
}

void redirect_output(const std::string& file) {
  const int input = open("/dev/null", O_RDONLY);
  const int output = open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0644);
  if (input < 0 || output < 0)
    throw std::runtime_error(fmt::format("cannot write {}: {}", file, std::strerror(errno)));
  dup2(input, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  close(input);
  close(output);
}

// Ends the process from the control channel's thread, in any state of the trainer's thread.
[[noreturn]] void end_process(const std::string& text, int exit_code) {
  if (!text.empty()) std::cerr << "sailor-rank: " << text << std::endl;
  _exit(exit_code);
}

// What a rank is started with, whichever way.
struct Start {
  std::string directory = variable("SAILOR_RUN_DIRECTORY");
  JobSpec job = load_job_spec(directory + "/job.yaml", variable("SAILOR_JOB_DIRECTORY"));
  JobSecrets secrets = read_job_secrets(directory);
  ControlEndpoint endpoint = ControlEndpoint::from_environment(secrets.control_client_key);
  ControlRoute route = find_control_route(endpoint, kControllerWait_s);
  // Other ranks reach this one by the address by which it reaches the controller: right for one machine, for
  // network namespaces and for a cluster alike.
  Listener listener{route.local_address};

  Start() {
    job.file = variable("SAILOR_JOB_DIRECTORY") + "/job.yaml";
    if (!job.training.deterministic) return;
    set_deterministic_environment();
    use_deterministic_algorithms();
  }
};

// For how long it has been inside a step that began then (RankResources::step_began_ns).
double seconds_in_step(int64_t began_ns) {
  if (began_ns == 0) return 0;
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return 1e-9 * static_cast<double>(std::chrono::nanoseconds(now).count() - began_ns);
}

// Trains until the controller says stop. `hello` says where this process is; `first` is its generation, if it
// is in one from the beginning.
int take_part(Start& start, Hello hello, std::optional<Generation> first) {
  GenerationInbox inbox;
  std::atomic<int64_t> step_began_ns{0};
  ControlClient control(start.endpoint, start.route.controller_address,
                        {.lease_expired =
                             [&start] {
                               end_process(
                                   fmt::format("the controller could not be reached for {:.0f} s; ending",
                                               start.endpoint.lease_s),
                                   kFailed);
                             },
                         .stop = [](const Stop& stop) { end_process(stop.text, stop.exit_code); },
                         .message = [&inbox](const ControlMessage& message) { inbox.receive(message); },
                         .in_step_s = [&step_began_ns] { return seconds_in_step(step_began_ns); }});
  // Ranks share a node's cores; more threads only on request of the user.
  if (!std::getenv("OMP_NUM_THREADS")) at::set_num_threads(1);
  // The scheduler sends signals to all processes of a step: agents and the controller act on them.
  if (start.job.elastic.enabled || !start.job.checkpoint.directory.empty()) {
    for (const int number : kSignalsToStop) std::signal(number, SIG_IGN);
  }
  hello.role = ControlRole::rank;
  hello.node = node_name();
  hello.host = host_name();
  hello.pid = getpid();
  hello.generation = 1;
  hello.start_ticks = process_start_ticks();
  hello.address = start.route.local_address;
  hello.port = start.listener.port();

  Failure failure{.rank = hello.rank, .node = node_name(), .pid = getpid()};
  try {
    const bool joins = !first;
    if (!joins) control.send(hello);
    const TokenData data = TokenData::open(start.job);
    RankResources resources{.job = start.job,
                            .data = data,
                            .listener = start.listener,
                            .secret = start.secrets.data,
                            .encrypts_data = start.secrets.encrypts_data,
                            .control = control,
                            .run_directory = start.directory,
                            .step_began_ns = step_began_ns,
                            .rank = failure.rank,
                            .trace_step = std::stoll(variable("SAILOR_TRACE_STEP"))};
    // A joining rank reports when it is ready.
    if (joins) control.send(hello);
    RankProcess(resources, inbox, node_name()).run(std::move(first));
  } catch (const CommError& e) {
    failure.text = e.what();
    failure.peer_lost = true;
    failure.lost_peer = e.peer();
  } catch (const std::exception& e) {
    failure.text = e.what();
  }
  failure.generation = inbox.entered();
  std::cerr << "sailor-rank: " << failure.text << std::endl;
  control.send(failure);
  // The controller's stop ends this process, with the job's reason in the log.
  std::this_thread::sleep_for(std::chrono::duration<double>(start.endpoint.lease_s));
  return kFailed;
}

// Started with all the others: the first generation.
int run_launched() {
  DetachedStart detached;
  Start start;
  const Plan plan = load_plan(start.directory + "/plan.json");
  const FirstGeneration first =
      meet(plan, {start.route.local_address, start.listener.port()}, variable("SAILOR_LAUNCH") == "local");
  start.listener.start(start.secrets.data);
  redirect_output(fmt::format("{}/logs/rank-{}.log", start.directory, first.slot.rank));
  announce_rank(first.slot, 1);
  detached.release();
  const Hello hello{.rank = first.slot.rank, .place = first.slot.node, .gpu = first.slot.gpu};
  return take_part(start, hello, first.generation);
}

// Started by an agent, for a GPU whose process has ended.
int run_joining() {
  // It is no use without the process that started it.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (std::to_string(getppid()) != variable("SAILOR_JOIN_PARENT")) return kFailed;
  Start start;
  start.listener.start(start.secrets.data);
  const Hello hello{.place = variable("SAILOR_JOIN_PLACE"), .gpu = std::stoi(variable("SAILOR_JOIN_GPU"))};
  return take_part(start, hello, std::nullopt);
}

}  // namespace

int main(int argc, char** argv) {
  set_gpu_environment();
  keep_freed_memory();
  use_tensor_cache();
  try {
    return argc > 1 && std::string(argv[1]) == "--join" ? run_joining() : run_launched();
  } catch (const std::exception& e) {
    std::cerr << "sailor-rank on " << node_name() << ": " << e.what() << std::endl;
    return kFailed;
  }
}
