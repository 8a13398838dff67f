// What an agent does when its controller is gone. With `--no-kill` Slurm would keep the job running without
// it, so the agent requeues the job, which continues from its newest checkpoint.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <random>
#include <thread>

#include "planner/scheduler/scheduler.h"

namespace sailor {

enum class RequeueVerdict {
  requeue,  // the controller's node is lost, or the batch script ended unexpectedly
  wait,     // the scheduler does not know yet, or the controller runs and only this node is disconnected
  leave     // the job ended in another way, was cancelled, or is already in the queue
};

// `job` and the node of its controller come from the scheduler, if it answers; `restarts` is the restart
// count of the job when this agent started. Pure.
RequeueVerdict judge_lost_job(const std::optional<QueuedJob>& job,
                              const std::optional<NodeInfo>& controller_node, int restarts);

// Clock, sleep and chance; by default those of the system.
struct PassingTime {
  std::function<double()> now_s = [] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  };
  std::function<void(double s)> sleep = [](double s) {
    std::this_thread::sleep_for(std::chrono::duration<double>(s));
  };
  // In [0, 1), different for every agent.
  std::function<double()> chance = [random = std::minstd_rand(std::random_device()())]() mutable {
    return std::uniform_real_distribution()(random);
  };
};

// Polls the job until the decision is to requeue or to leave it, at most for `patience_s`, and requeues it if
// so decided. Pauses grow from two seconds to fifteen and vary, so that the agents of a large job neither ask
// nor requeue together. SAILOR_JOB_ID and SAILOR_RESTART_COUNT, set by the controller, identify the job,
// because an agent may run in a helper job. Does nothing outside a job.
void requeue_lost_job(Scheduler& scheduler, double patience_s, const PassingTime& time = {});

}  // namespace sailor
