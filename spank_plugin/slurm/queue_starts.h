// When the jobs of Slurm's queue will start, and on which nodes: in their order, each where it fits first, by
// the time limits of those that run or are placed before it. All components of a heterogeneous job start
// together. Jobs take whole nodes here. Slurm keeps nodes for a waiting job from the last multiple of
// bf_resolution before its start on: a job behind it starts on them only if its time limit ends earlier.
//
// Slurm's own expected starts are later: to find one it lets running jobs end one after the other, but looks
// only now and then whether the job fits, and rounds all times. They count for jobs that wait for something
// other than nodes. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "spank_plugin/slurm/slurm_view.h"

namespace sailor {

struct QueueStart {
  double wait_s = 0;
  double kept_s = 0;  // jobs behind it that start earlier on its nodes end by then
  std::vector<std::string> nodes;
};

// Of the first `most` entries of the queue; nothing where it is unknown.
std::vector<std::optional<QueueStart>> queue_starts(const SlurmView& view, size_t most);

// bf_resolution of SchedulerParameters (slurm.conf): a minute where it is not set.
int64_t backfill_resolution_s(const std::string& scheduler_parameters);

// The limit of a job in this partition that has none of its own; nothing = none.
std::optional<double> default_limit_s(const SlurmPartition& partition);

}  // namespace sailor
