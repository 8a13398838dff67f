// The limits of QOS and associations that hold for a job, in Slurm's order of precedence. Pure.
//
// A limit of the partition's QOS replaces the same limit of the job's QOS, and both replace that of the
// association; group limits of an association and of the accounts above it hold together.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "spank_plugin/slurm/accounting.h"
#include "spank_plugin/slurm/node_use.h"
#include "spank_plugin/slurm/partition_rules.h"
#include "spank_plugin/slurm/slurm_view.h"

namespace sailor {

// The most of a TRES that the job may have.
struct JobLimit {
  std::string tres;    // `gres/gpu`, `gres/gpu:a100`, `node`, `cpu`, `mem` (MB); `job`: its components
  int most = 0;        // now
  int ever = 0;        // once the user's and others' jobs have ended
  std::string reason;  // "QOS limited allows 6 GPUs per user, 4 are in use: at most 2"

  bool operator==(const JobLimit&) const = default;
};

struct JobLimits {
  std::string obstacle;  // why Slurm would not start the job in the partition; empty = it would
  bool ignores_time_limit = false, ignores_node_limit = false;  // of the partition, thanks to the QOS
  std::vector<JobLimit> on_tres;
};

// With the account and the QOS that Slurm takes when none is given, where they are known.
PartitionWishes with_defaults(PartitionWishes wishes, const Accounting& accounting);

// What holds in the partition, for wishes with defaults. `waits`: the job waits until the user's and others'
// jobs have ended, so that what they use does not count.
JobLimits limits_in(const SlurmPartition& partition, const PartitionWishes& wishes,
                    const Accounting& accounting, bool waits);

// Ignores what a job of the same account and QOS holds that will have ended, by node.
void forget_use(Accounting& accounting, const std::map<std::string, JobShare>& shares);

}  // namespace sailor
