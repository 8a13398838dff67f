#include "trainer/launch/agent_programs.h"

#include <signal.h>

#include <cstdio>
#include <exception>
#include <utility>

#include "planner/process/subprocess.h"
#include "trainer/launch/helper_job.h"

namespace sailor {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kNotStarted = 127;  // as a shell has it
constexpr int kKilled = 128 + SIGKILL;

}  // namespace

AgentPrograms::AgentPrograms(std::string log, std::function<void(const ProgramsReport&)> report)
    : log_(std::move(log)), report_(std::move(report)) {}

void AgentPrograms::start(const StartPrograms& what) {
  if (child_ >= 0) kill_all();
  node_ = what.node;
  generation_ = what.generation;
  try {
    child_ =
        spawn(what.command, {.environment = what.environment, .output_file = in_helper_job() ? log_ : ""});
    report_({node_, generation_, std::nullopt});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "sailor-agent: %s\n", error.what());
    ended(kNotStarted);
  }
}

void AgentPrograms::signal(const SignalPrograms& what) {
  if (what.generation != generation_ || !forward(what.signal) || !what.kill_after_s) return;
  const auto at = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                     std::chrono::duration<double>(*what.kill_after_s));
  if (!kill_at_ || at < *kill_at_) kill_at_ = at;
}

bool AgentPrograms::forward(int signal) {
  if (child_ < 0) return false;
  kill(child_, signal);
  return true;
}

bool AgentPrograms::child_ended(pid_t child, int wait_status) {
  if (child_ < 0 || child != child_) return false;
  end_all_children(0);  // if it was killed, its ranks have become children of this process
  ended(exit_code_of(wait_status));
  return true;
}

void AgentPrograms::tick() {
  if (kill_at_ && Clock::now() > *kill_at_) kill_all();
}

// Also what the ranks have started.
void AgentPrograms::kill_all() {
  end_all_children(0);
  ended(kKilled);
}

void AgentPrograms::ended(int exit_code) {
  child_ = -1;
  kill_at_.reset();
  report_({node_, generation_, exit_code});
}

}  // namespace sailor
