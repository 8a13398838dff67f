#include "trainer/elastic/requeue.h"

#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <thread>
#include <vector>

#include "trainer/elastic/scontrol_line.h"
#include "trainer/elastic/subprocess.h"

namespace sailor {
namespace {

// What scontrol prints; its complaints are of no interest here. Without slurmctld it would try for ever.
std::string ask(const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {"sh", "-c", "exec timeout 10 scontrol \"$@\" 2>/dev/null", "sh"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  try {
    return run_and_read(command);
  } catch (const std::runtime_error&) {  // Slurm does not answer, or does not know it any more
    return "";
  }
}

}  // namespace

std::string batch_host_of(const std::string& job) {
  return scontrol_value(job, "BatchHost");
}

RequeueVerdict judge_lost_job(const std::string& job, const std::string& controller_node, int restarts) {
  const std::string state = scontrol_value(job, "JobState");
  if (state.empty()) return RequeueVerdict::wait;
  if (std::atoi(scontrol_value(job, "Restarts").c_str()) != restarts) return RequeueVerdict::leave;
  if (state == "FAILED" || state == "NODE_FAIL") return RequeueVerdict::requeue;
  if (state == "COMPLETING") {
    // It completes when its agents have ended: they cannot wait for that. A job that was cancelled gives no
    // reason.
    const std::string reason = scontrol_value(job, "Reason");
    const bool failed = reason == "JobLaunchFailure" || reason == "NonZeroExitCode" || reason == "NodeDown";
    return failed ? RequeueVerdict::requeue : RequeueVerdict::wait;
  }
  if (state != "RUNNING") return RequeueVerdict::leave;
  // `*` marks a node that does not respond.
  const std::string node = scontrol_value(controller_node, "State");
  const bool lost = node.find("DOWN") != std::string::npos || node.find('*') != std::string::npos ||
                    node.find("NOT_RESPONDING") != std::string::npos;
  return lost ? RequeueVerdict::requeue : RequeueVerdict::wait;
}

void requeue_lost_job(double patience_s) {
  const char* id = std::getenv("SAILOR_JOB_ID");
  if (!id || !*id) return;
  const char* count = std::getenv("SAILOR_RESTART_COUNT");
  const int restarts = count ? std::atoi(count) : 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(patience_s);
  while (std::chrono::steady_clock::now() < end) {
    const std::string job = ask({"show", "job", "-o", id});
    const std::string host = batch_host_of(job);
    const std::string node = host.empty() ? "" : ask({"show", "node", "-o", host});
    const RequeueVerdict verdict = judge_lost_job(job, node, restarts);
    if (verdict == RequeueVerdict::leave) return;
    // Another agent may have been quicker: the next look says so.
    if (verdict == RequeueVerdict::requeue) ask({"requeue", id});
    std::this_thread::sleep_for(std::chrono::seconds(2));
  }
}

}  // namespace sailor
