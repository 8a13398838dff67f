// Requests to a scheduler, and its answers about jobs and nodes. Value types. Points in time are in seconds
// since 1970; limits and lengths are in seconds.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "planner/scheduler/allocation.h"

namespace sailor {

// The job that a process runs in.
struct OwnJob {
  std::string id;
  int restarts = 0;              // number of restarts
  std::string submit_directory;  // empty = not known
  std::string account, qos, reservation;
};

struct NodeInfo {
  std::string name;
  std::string address;  // at which other nodes reach it: a host name or an IP address
  std::vector<std::string> partitions;
  std::vector<std::string> features;
  std::map<std::string, int> gpus;  // by type; "" = untyped
  int cpus = 0;
  bool up = true;         // not down
  bool responds = true;   // responds to the scheduler; a node may be up and not respond
  bool draining = false;  // takes no new job
  bool in_use = false;    // by a job

  bool lost() const { return !up || !responds; }
  // Ignores reservations.
  bool free() const { return !lost() && !draining && !in_use; }
};

enum class JobState {
  pending,
  running,
  completing,  // its processes are ending
  completed,
  failed,  // its script failed
  node_failed,
  cancelled,
  timed_out,
  preempted,
  other
};

struct QueuedJob {
  std::string id;
  std::string name;
  std::string partition;
  JobState state = JobState::other;
  // The launch, the script or a node failed, in a job that is completing or has ended.
  bool failed = false;
  // It ends, or has ended, at its time limit; to make room for a job of higher priority.
  bool out_of_time = false, preempted = false;
  int restarts = 0;
  std::vector<std::string> nodes;  // nodes that it holds, or held last
  std::string head_node;           // node that runs its script; empty while there is none
  std::string submit_directory;
  int cpus = 0;
  std::map<std::string, int> gpus_on{};  // that it holds, by node
  std::optional<int64_t> start_s{};      // start, or expected start
  std::optional<int64_t> end_s{};        // time limit, or end
};

// A request for whole nodes that run a batch script.
struct JobRequest {
  std::string name = "job";
  std::string partition{};  // empty = the default one
  int nodes = 1;
  std::vector<std::string> node_names{};      // exactly these; empty = any
  std::vector<std::string> excluded_nodes{};  // none of these
  std::string feature{};                      // required on every node; empty = none
  std::string gpu_type{};                     // required on every node; empty = any
  std::optional<int> time_limit_s{};          // rounded up to minutes; nothing = the partition's
  // It ends by then, in less time than its limit but not less than `least_s`, or is removed from the queue.
  std::optional<int64_t> deadline_s{};
  std::optional<int> least_s{};  // the limit may become as short, if the job then starts earlier
  int nice = 0;                  // >= 0; a larger value means a lower priority
  bool no_kill = false;          // continues when it loses a node
  bool requeue = true;           // restarted when a node fails, or after preemption
  std::string script = "true";   // run by a shell
};

// A request for one more node for a running job: a job of its own, which waits in the queue like any other.
// The scheduler removes it when it can no longer run for `least_s` before `end_s`.
struct HelperRequest {
  std::string main_job;
  std::string node{};                           // by name; empty = any that fits
  std::vector<std::string> excluded_nodes{};    // but none of these
  std::string feature{};                        // required on it; empty = none
  std::string partition{};                      // empty = the user's default
  std::optional<int64_t> end_s{};               // of the main job
  int least_s = 60;                             // shortest time that is useful
  std::string account{}, qos{}, reservation{};  // empty = not given
  std::string gres{};                           // name of one of its GPUs in requests; empty = any
  int gpus = 0;                                 // 0 = do not ask for them
  bool whole_node = true;
  int cpus = 0;               // of a part of a node; 0 = the scheduler's default
  int64_t memory_mb = 0;      // the same
  bool after_others = false;  // with the lowest priority
  std::string script{};       // run by a shell on the node
  std::string output_file{};  // of the script, appended; empty = the scheduler's default
};

// A program on a node that the job already has.
struct StepSpec {
  AllocatedNode node;
  std::vector<std::string> command;
  std::map<std::string, std::string> environment{};  // added to this process's
};

// A program on one node, in a job of its own that ends with it.
struct NodeProgram {
  std::string job_name;
  std::string node;
  std::string partition{};  // empty = the default one
  std::vector<std::string> command;
  bool whole_node = true;            // the whole node, unbound, instead of one task's share
  int gpus = 0;                      // to request: a step only sees those that its job requested
  std::optional<int> immediate_s{};  // time limit for the allocation; nothing = wait in the queue
  std::optional<int> limit_s{};      // time limit of the job
  std::string output_file{};         // stdout and stderr; empty = this process's
};

// Nodes of one partition, for a job over several.
struct JobPart {
  std::string partition;
  std::vector<std::string> nodes;
  int gpus = 0;  // requested on each node: steps get those that the job requested; 0 = none
};

}  // namespace sailor
