#include "trainer/elastic/helper_job.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <stdexcept>

#include "trainer/comm/file_descriptor.h"
#include "trainer/elastic/allocation.h"
#include "trainer/elastic/launcher.h"
#include "trainer/elastic/scontrol_line.h"
#include "trainer/elastic/signals.h"
#include "trainer/elastic/subprocess.h"

namespace sailor {
namespace {

constexpr int kImmediate_s = 5;    // for Slurm to give a node that is free
constexpr int kLeastMinutes = 1;   // that a job can be asked for
constexpr int kStepEnd_ms = 5000;  // for the step to end once its job is cancelled

std::string job_name(const std::string& main_job) {
  return fmt::format("sailor-{}-helper", main_job);
}

// Slurm's programs try for ever when slurmctld does not answer.
void scancel(const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {"timeout", "10", "scancel", "-Q"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  try {
    run_and_read(command);
  } catch (const std::runtime_error&) {  // its end has come already, or comes with its time limit
  }
}

// An allocation that is given back with the object.
class HelperJob {
 public:
  explicit HelperJob(std::string id) : id_(std::move(id)) {}
  ~HelperJob() { end(); }
  HelperJob(const HelperJob&) = delete;
  HelperJob& operator=(const HelperJob&) = delete;

  const std::string& id() const { return id_; }
  void end() {
    if (!ended_) scancel({id_});
    ended_ = true;
  }

 private:
  std::string id_;
  bool ended_ = false;
};

// Its children, until they have ended or it is told to end.
class Keeper {
 public:
  Keeper() : signals_({SIGCHLD, SIGTERM, SIGINT, SIGHUP, kEndHelperJob}) {
    // Whoever started this process wants the job; without that one it is of no use.
    prctl(PR_SET_PDEATHSIG, kEndHelperJob);
    const char* parent = std::getenv("SAILOR_KEEPER_PARENT");
    told_to_end_ = parent && std::to_string(getppid()) != parent;
  }

  // The child's wait status; nothing when this process is told to end first, or the time is over.
  std::optional<int> wait(pid_t child, int timeout_ms = -1) {
    while (true) {
      int status = 0;
      if (waitpid(child, &status, WNOHANG) == child) return status;
      if (told_to_end_ && timeout_ms < 0) return std::nullopt;
      const std::vector<int> arrived = wait_for_signals(signals_, never_, timeout_ms);
      if (arrived.empty() && timeout_ms >= 0) return std::nullopt;
      for (const int number : arrived) told_to_end_ |= number == kEndHelperJob;
    }
  }
  bool told_to_end() const { return told_to_end_; }

 private:
  SignalDescriptor signals_;
  SelfPipe never_;
  bool told_to_end_ = false;
};

// What salloc said, when it ended or was told to.
std::string ask_slurm(Keeper& keeper, const HelperRequest& request) {
  const FileDescriptor said = memory_file("salloc");
  std::vector<std::string> command = {"sh", "-c", "exec \"$@\" 2>&1", "sh"};
  for (const std::string& word : helper_allocation_command(request, std::time(nullptr)))
    command.push_back(word);
  const pid_t salloc = spawn(command, {.environment = {}, .stdout_descriptor = said.get()});
  if (!keeper.wait(salloc)) {
    kill(salloc, SIGTERM);  // it takes back what it asked for
    keeper.wait(salloc, kStepEnd_ms);
  }
  return read_all(said.get());
}

int processors_of(const std::string& job_id) {
  const std::string line = run_and_read({"timeout", "10", "scontrol", "show", "job", "-o", job_id});
  return std::atoi(scontrol_value(line, "NumCPUs").c_str());
}

}  // namespace

std::vector<std::string> helper_allocation_command(const HelperRequest& request, int64_t now_s) {
  std::vector<std::string> command = {"salloc",
                                      "--no-shell",
                                      fmt::format("--immediate={}", kImmediate_s),
                                      "--job-name=" + job_name(request.main_job),
                                      "--nodes=1",
                                      "--nodelist=" + request.node,
                                      "--exclusive",
                                      fmt::format("--comment=sailor: helps job {}", request.main_job)};
  const auto option = [&command](const char* name, const std::string& value) {
    if (!value.empty()) command.push_back(fmt::format("--{}={}", name, value));
  };
  option("partition", request.partition);
  option("account", request.account);
  option("qos", request.qos);
  option("reservation", request.reservation);
  if (request.end_s)
    command.push_back(
        fmt::format("--time={}", std::max<int64_t>(kLeastMinutes, (*request.end_s - now_s + 59) / 60)));
  return command;
}

std::optional<std::string> granted_job(const std::string& salloc_output) {
  const std::string words = "Granted job allocation ";
  const size_t at = salloc_output.find(words);
  if (at == std::string::npos) return std::nullopt;
  const size_t begin = at + words.size();
  const size_t end = std::min(salloc_output.find_first_not_of("0123456789", begin), salloc_output.size());
  if (end == begin) return std::nullopt;
  return salloc_output.substr(begin, end - begin);
}

std::vector<std::string> keeper_command(const std::string& agent_program, const HelperRequest& request) {
  return {agent_program,   "helper",          request.main_job,
          request.node,    request.partition, request.end_s ? std::to_string(*request.end_s) : "",
          request.account, request.qos,       request.reservation};
}

HelperRequest parse_keeper(const std::vector<std::string>& arguments) {
  if (arguments.size() != 7 || arguments[0].empty() || arguments[1].empty())
    throw std::runtime_error("sailor-agent helper: needs the seven words of keeper_command()");
  HelperRequest request{.main_job = arguments[0], .node = arguments[1], .partition = arguments[2]};
  if (!arguments[3].empty()) request.end_s = std::stoll(arguments[3]);
  request.account = arguments[4];
  request.qos = arguments[5];
  request.reservation = arguments[6];
  return request;
}

int keep_helper_job(const HelperRequest& request, const std::string& agent_program) {
  Keeper keeper;
  forget_slurm_job();
  const std::string said = ask_slurm(keeper, request);
  const std::optional<std::string> id = granted_job(said);
  if (!id) {
    std::fprintf(stderr, "%s", said.c_str());
    return 1;
  }
  HelperJob job(*id);
  if (keeper.told_to_end()) return 0;
  const AllocatedNode node{
      .name = request.node, .het_group = -1, .cpus = processors_of(*id), .helper_job = *id};
  const pid_t step =
      spawn(remote_shell_command(request.node, "true", {node}, agent_program),
            {.environment = {{"SAILOR_STEP_PID", std::to_string(getpid())}, {"SAILOR_HELPER_JOB", *id}}});
  const std::optional<int> status = keeper.wait(step);
  job.end();
  if (!status) {
    keeper.wait(step, kStepEnd_ms);
    kill(step, SIGKILL);
    return 0;
  }
  return *status == 0 ? 0 : 1;
}

void end_own_helper_job() {
  if (const char* job = std::getenv("SAILOR_HELPER_JOB")) scancel({job});
}

void cancel_left_helper_jobs(const std::string& main_job) {
  scancel({"--user=" + std::to_string(getuid()), "--jobname=" + job_name(main_job)});
}

}  // namespace sailor
