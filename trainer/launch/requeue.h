// What an agent does when its controller is gone: with `--no-kill` Slurm would let the job run on for ever
// without it. The job goes back into the queue, and then on from its newest checkpoint.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <thread>

#include "planner/scheduler/scheduler.h"

namespace sailor {

enum class RequeueVerdict {
  requeue,  // its controller's node is lost, or the batch script ended without being told to
  wait,     // the scheduler does not know yet, or the controller lives and only this node is cut off
  leave     // the job ended in another way, was cancelled, or is in the queue again already
};

// `job` and the node of its controller are what the scheduler says of them, as far as it answers; `restarts`
// is how often the job had been started again when this agent began. Pure.
RequeueVerdict judge_lost_job(const std::optional<QueuedJob>& job,
                              const std::optional<NodeInfo>& controller_node, int restarts);

// By default the machine's.
struct PassingTime {
  std::function<double()> now_s = [] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  };
  std::function<void(double s)> sleep = [](double s) {
    std::this_thread::sleep_for(std::chrono::duration<double>(s));
  };
};

// Watches the job until it is time to requeue it, requeues it, and returns; or when it is to be left alone,
// or after `patience_s`. Which job it is stands in SAILOR_JOB_ID and SAILOR_RESTART_COUNT, as the controller
// set them: an agent may run in a helper job. Outside a job it does nothing.
void requeue_lost_job(Scheduler& scheduler, double patience_s, const PassingTime& time = {});

}  // namespace sailor
