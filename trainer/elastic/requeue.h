// What an agent does when its controller is gone: with `--no-kill` Slurm would let the job run on for ever
// without it. The job goes back into the queue, and then on from its newest checkpoint.
#pragma once

#include <string>

namespace sailor {

enum class RequeueVerdict {
  requeue,  // its controller's node is lost, or the batch script ended without being told to
  wait,     // Slurm does not know yet, or the controller lives and only this node is cut off
  leave     // the job ended in another way, was cancelled, or is in the queue again already
};

// `job` is the line of `scontrol show job -o`, `controller_node` that of `scontrol show node -o` for its
// batch host (may be empty); `restarts` is how often the job had been started again when this agent began.
// Pure.
RequeueVerdict judge_lost_job(const std::string& job, const std::string& controller_node, int restarts);

// The batch host in that line; empty when there is none.
std::string batch_host_of(const std::string& job);

// Watches the job until it is time to requeue it, requeues it, and returns; or when it is to be left alone,
// or after `patience_s`. Which job it is stands in SAILOR_JOB_ID and SAILOR_RESTART_COUNT, as the controller
// set them: an agent may run in a helper job. Outside a Slurm job it does nothing.
void requeue_lost_job(double patience_s);

}  // namespace sailor
