#include "trainer/launch/helper_job.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <utility>

#include "trainer/launch/launcher.h"
#include "trainer/process/signals.h"

namespace sailor {
namespace {

using Json = nlohmann::ordered_json;

// Between two questions about a job: it is rare that somebody else removes it.
constexpr int kFirstPause_ms = 600'000, kLongestPause_ms = 1'800'000;
constexpr int kMostUnknown = 3;
constexpr const char* kInHelperJob = "SAILOR_IN_HELPER_JOB";

// Whether the process that started this one wants the job no more, or is gone.
class KeeperSignals {
 public:
  KeeperSignals() : signals_({SIGTERM, SIGINT, SIGHUP, kEndHelperJob}) {
    prctl(PR_SET_PDEATHSIG, kEndHelperJob);
    const char* parent = std::getenv("SAILOR_KEEPER_PARENT");
    told_to_end_ = parent && std::to_string(getppid()) != parent;
  }
  // The other signals reach all processes of a job before its end, while the training state is saved.
  bool told_to_end_within(int pause_ms) {
    if (told_to_end_) return true;
    for (const int number : wait_for_signals(signals_, never_, pause_ms))
      told_to_end_ |= number == kEndHelperJob;
    return told_to_end_;
  }

 private:
  SignalDescriptor signals_;
  SelfPipe never_;
  bool told_to_end_ = false;
};

bool is_over(const QueuedJob& job) {
  return job.state != JobState::pending && job.state != JobState::running && job.state != JobState::other;
}

}  // namespace

std::vector<std::string> keeper_command(const std::string& agent_program, const HelperRequest& request) {
  Json json = {{"main_job", request.main_job},
               {"node", request.node},
               {"excluded_nodes", request.excluded_nodes},
               {"feature", request.feature},
               {"partition", request.partition},
               {"least_s", request.least_s},
               {"account", request.account},
               {"qos", request.qos},
               {"reservation", request.reservation},
               {"gres", request.gres},
               {"gpus", request.gpus},
               {"whole_node", request.whole_node},
               {"cpus", request.cpus},
               {"memory_mb", request.memory_mb},
               {"after_others", request.after_others},
               {"output_file", request.output_file}};
  if (request.end_s) json["end_s"] = *request.end_s;
  return {agent_program, "helper", json.dump()};
}

HelperRequest parse_keeper(const std::vector<std::string>& arguments) {
  const std::string usage = "sailor-agent helper: needs the argument of keeper_command()";
  if (arguments.size() != 1) throw std::runtime_error(usage);
  try {
    const Json json = Json::parse(arguments.front());
    HelperRequest request{.main_job = json.at("main_job")};
    json.at("node").get_to(request.node);
    json.at("excluded_nodes").get_to(request.excluded_nodes);
    json.at("feature").get_to(request.feature);
    json.at("partition").get_to(request.partition);
    json.at("least_s").get_to(request.least_s);
    json.at("account").get_to(request.account);
    json.at("qos").get_to(request.qos);
    json.at("reservation").get_to(request.reservation);
    json.at("gres").get_to(request.gres);
    json.at("gpus").get_to(request.gpus);
    json.at("whole_node").get_to(request.whole_node);
    json.at("cpus").get_to(request.cpus);
    json.at("memory_mb").get_to(request.memory_mb);
    json.at("after_others").get_to(request.after_others);
    json.at("output_file").get_to(request.output_file);
    if (json.contains("end_s")) request.end_s = json.at("end_s").get<int64_t>();
    return request;
  } catch (const Json::exception& error) {
    throw std::runtime_error(fmt::format("{}: {}", usage, error.what()));
  }
}

int keep_helper_job(Scheduler& scheduler, HelperRequest request, const std::string& agent_program) {
  KeeperSignals signals;
  scheduler.forget_own_job();
  // The agent names this process, by which the controller knows the job.
  setenv("SAILOR_STEP_PID", std::to_string(getpid()).c_str(), 1);
  setenv("SAILOR_AGENT_PROGRAM", agent_program.c_str(), 1);
  request.script = "exec \"$SAILOR_AGENT_PROGRAM\" helper-node";
  std::string job;
  try {
    job = scheduler.submit_helper(request);
  } catch (const std::runtime_error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  int unknown = 0;  // answers in a row: the scheduler may be down, or has forgotten the job
  for (int pause_ms = kFirstPause_ms; !signals.told_to_end_within(pause_ms);
       pause_ms = std::min(2 * pause_ms, kLongestPause_ms)) {
    const std::optional<QueuedJob> found = scheduler.find_job(job);
    unknown = found ? 0 : unknown + 1;
    if (found ? !is_over(*found) : unknown < kMostUnknown) continue;
    std::fprintf(stderr, "helper job %s is not in the queue any more\n", job.c_str());
    return 1;
  }
  scheduler.give_back(job);
  return 0;
}

StepSpec helper_step(Scheduler& scheduler, const std::string& agent_program) {
  scheduler.forget_step_defaults();
  setenv(kInHelperJob, "yes", 1);
  const Allocation own = scheduler.own_allocation();
  return remote_shell_step(own.nodes.at(0).name, "true", own.nodes, agent_program);
}

bool in_helper_job() {
  return std::getenv(kInHelperJob) != nullptr;
}

double time_to_leave_s(Scheduler& scheduler, int64_t now_s, double least_s) {
  const std::optional<QueuedJob> job = scheduler.find_job(own_job_id(scheduler));
  if (!job || !job->preempted || !job->end_s) return least_s;
  return std::max(least_s, static_cast<double>(*job->end_s - now_s));
}

}  // namespace sailor
