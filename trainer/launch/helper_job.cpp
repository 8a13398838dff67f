#include "trainer/launch/helper_job.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <stdexcept>

#include "trainer/launch/launcher.h"
#include "trainer/process/signals.h"

namespace sailor {
namespace {

constexpr int kStepEnd_ms = 5000;  // for the step to end after its job is cancelled

// An allocation that the destructor releases.
class HelperJob {
 public:
  HelperJob(Scheduler& scheduler, std::string id) : scheduler_(scheduler), id_(std::move(id)) {}
  ~HelperJob() { end(); }
  HelperJob(const HelperJob&) = delete;
  HelperJob& operator=(const HelperJob&) = delete;

  void end() {
    if (!ended_) scheduler_.give_back(id_);
    ended_ = true;
  }

 private:
  Scheduler& scheduler_;
  std::string id_;
  bool ended_ = false;
};

// Waits for its child processes, or until it must end.
class Keeper {
 public:
  Keeper() : signals_({SIGCHLD, SIGTERM, SIGINT, SIGHUP, kEndHelperJob}) {
    // The job is useless without the process that started this one.
    prctl(PR_SET_PDEATHSIG, kEndHelperJob);
    const char* parent = std::getenv("SAILOR_KEEPER_PARENT");
    told_to_end_ = parent && std::to_string(getppid()) != parent;
  }

  // Returns whether done() became true, e.g. by the end of a child; false if this process must end first, or
  // after the time limit.
  template <typename Done>
  bool wait(Done done, int timeout_ms = -1) {
    while (!done()) {
      if (told_to_end_ && timeout_ms < 0) return false;
      const std::vector<int> arrived = wait_for_signals(signals_, never_, timeout_ms);
      if (arrived.empty() && timeout_ms >= 0) return false;
      for (const int number : arrived) told_to_end_ |= number == kEndHelperJob;
    }
    return true;
  }
  bool told_to_end() const { return told_to_end_; }

 private:
  SignalDescriptor signals_;
  SelfPipe never_;
  bool told_to_end_ = false;
};

// The answer of the scheduler when it has decided, or when this process must end.
HelperAllocation::Answer ask_for_node(Keeper& keeper, Scheduler& scheduler, const HelperRequest& request) {
  const std::unique_ptr<HelperAllocation> asked = scheduler.allocate_more(request);
  const auto decided = [&] { return asked->decided(); };
  if (!keeper.wait(decided)) {
    asked->withdraw();
    keeper.wait(decided, kStepEnd_ms);
  }
  return asked->answer();
}

AllocatedNode granted_node(Scheduler& scheduler, const std::string& name, const std::string& job_id) {
  const std::optional<QueuedJob> job = scheduler.find_job(job_id);
  if (!job)
    throw std::runtime_error(fmt::format("job {} was granted, but the scheduler no longer lists it", job_id));
  AllocatedNode node{.name = name, .het_group = -1, .cpus = job->cpus, .helper_job = job_id};
  if (const auto held = job->gpus_on.find(name); held != job->gpus_on.end()) node.gpus = held->second;
  return node;
}

}  // namespace

std::vector<std::string> keeper_command(const std::string& agent_program, const HelperRequest& request) {
  return {agent_program,
          "helper",
          request.main_job,
          request.node,
          request.partition,
          request.end_s ? std::to_string(*request.end_s) : "",
          request.account,
          request.qos,
          request.reservation,
          std::to_string(request.gpus),
          request.gres,
          std::to_string(request.cpus),
          std::to_string(request.memory_mb)};
}

HelperRequest parse_keeper(const std::vector<std::string>& arguments) {
  constexpr size_t kArguments = 11;
  if (arguments.size() != kArguments || arguments[0].empty() || arguments[1].empty())
    throw std::runtime_error("sailor-agent helper: needs the eleven arguments of keeper_command()");
  HelperRequest request{.main_job = arguments[0], .node = arguments[1], .partition = arguments[2]};
  if (!arguments[3].empty()) request.end_s = std::stoll(arguments[3]);
  request.account = arguments[4];
  request.qos = arguments[5];
  request.reservation = arguments[6];
  request.gpus = std::stoi(arguments[7]);
  request.gres = arguments[8];
  request.cpus = std::stoi(arguments[9]);
  request.memory_mb = std::stoll(arguments[10]);
  return request;
}

int keep_helper_job(Scheduler& scheduler, const HelperRequest& request, const std::string& agent_program) {
  Keeper keeper;
  scheduler.forget_own_job();
  const HelperAllocation::Answer answer = ask_for_node(keeper, scheduler, request);
  if (!answer.job) {
    std::fprintf(stderr, "%s", answer.text.c_str());
    return 1;
  }
  HelperJob job(scheduler, *answer.job);
  if (keeper.told_to_end()) return 0;
  const AllocatedNode node = granted_node(scheduler, request.node, *answer.job);
  StepSpec spec = remote_shell_step(request.node, "true", {node}, agent_program);
  spec.environment = {{"SAILOR_STEP_PID", std::to_string(getpid())}, {"SAILOR_HELPER_JOB", *answer.job}};
  const StepId step = scheduler.start_step(spec);
  std::optional<int> status;
  const auto ended = [&] { return (status = scheduler.step_end(step)).has_value(); };
  const bool by_itself = keeper.wait(ended);
  job.end();
  if (by_itself) return *status == 0 ? 0 : 1;
  if (!keeper.wait(ended, kStepEnd_ms)) scheduler.signal_step(step, SIGKILL);
  return 0;
}

void end_own_helper_job(Scheduler& scheduler) {
  if (const char* job = std::getenv("SAILOR_HELPER_JOB")) scheduler.give_back(job);
}

}  // namespace sailor
