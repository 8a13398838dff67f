// What Slurm's accounts allow: the limits of QOS and of the user's associations, with what of them is in use,
// as slurmctld has them. Value types.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sailor {

// One limit on a trackable resource (TRES).
struct TresLimit {
  // On one job; on all running jobs of a user, or of everybody in the QOS or below the association; on their
  // minutes times resources (what is left of them shrinks), and on those of one job.
  enum class Of { job, user, group, group_minutes, job_minutes };
  Of of = Of::job;
  std::string tres;  // as Slurm calls it: `gres/gpu`, `gres/gpu:a100`, `node`; `job` counts jobs
  int64_t most = 0;
  int64_t used = 0;  // 0 for those of one job
};

struct AccountLimits {
  std::vector<TresLimit> tres;
  std::optional<double> max_wall_s;  // of one job
};

struct QosRecord {
  std::string name;
  bool before_partition = false;    // its limits precede those of a partition's QOS (OverPartQOS)
  bool ignores_time_limit = false;  // of partitions (PartitionTimeLimit)
  bool ignores_node_limit = false;  // the same (PartitionMaxNodes)
  AccountLimits limits{};
};

struct AssociationRecord {
  uint32_t id = 0;
  std::string account;
  std::string user;       // empty: the record of the account itself
  std::string partition;  // holds only there; empty = everywhere
  std::string parent;     // account above that of an account; empty: none
  bool is_default = false;
  std::string default_qos{};  // empty: none
  AccountLimits limits{};
};

struct Accounting {
  std::vector<QosRecord> qos;
  std::vector<AssociationRecord> associations;  // of the user, and of accounts
  std::string note;                             // what could not be read; empty = nothing
};

// Use of an association's group limits, which libslurm does not tell.
struct AssociationUse {
  int64_t jobs = 0;
  std::map<std::string, int64_t> tres, minutes;  // minutes: past ones and those that running jobs may need
};
// Of the output of `scontrol -o show assoc_mgr`, by id.
std::map<uint32_t, AssociationUse> parse_association_use(const std::string& text);

// The records, if limits are enforced on this cluster: with one query of slurmctld, and another one where an
// association has group limits. Needs an initialised libslurm. What cannot be read is missing and in `note`.
std::optional<Accounting> read_accounting();

}  // namespace sailor
