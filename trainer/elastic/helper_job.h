// A helper job: one node beyond those of the main job, asked of Slurm for as long as the main job can use it.
//
// `sailor-agent helper` is its keeper, a child of the controller: it asks for the node, runs the node's agent
// there as a Slurm step, and cancels the job when that step ends, when it is told to (kEndHelperJob), or when
// the controller dies. What Slurm sends to all processes of a job that is to go, SIGTERM, does not end it:
// the state of training is saved first. Where the keeper is gone too (the controller's node is lost), the
// agent cancels the job itself when its lease has run out. What is left of a killed run is cancelled by the
// next start of the same job.
#pragma once

#include <csignal>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sailor {

constexpr int kEndHelperJob = SIGUSR1;

struct HelperRequest {
  std::string main_job;
  std::string node;
  std::string partition{};                      // empty = the user's default
  std::optional<int64_t> end_s{};               // of the main job, since 1970
  std::string account{}, qos{}, reservation{};  // of the main job; empty = not said
};

// The command line that asks Slurm for it: at once or not at all, and without a shell.
std::vector<std::string> helper_allocation_command(const HelperRequest& request, int64_t now_s);
// The job id in what salloc said; nothing when it granted none.
std::optional<std::string> granted_job(const std::string& salloc_output);

// The keeper's own command line, and back. parse_keeper() throws std::runtime_error.
std::vector<std::string> keeper_command(const std::string& agent_program, const HelperRequest& request);
HelperRequest parse_keeper(const std::vector<std::string>& arguments);

// The keeper: returns the exit code of the process when the job is over: 1 when Slurm did not give the node,
// with its reason on stderr. Call from a process without threads. Throws std::runtime_error.
int keep_helper_job(const HelperRequest& request, const std::string& agent_program);

// Of the process of an agent: cancels the helper job that it runs in. Does nothing in another one.
void end_own_helper_job();
// Cancels helper jobs that an earlier start of the main job left behind.
void cancel_left_helper_jobs(const std::string& main_job);

}  // namespace sailor
