// What is asked of a scheduler, and what it says of jobs and nodes. Value types. A point in time is in
// seconds since 1970, a limit or a length in seconds.
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
  int restarts = 0;              // how often it has been started again
  std::string submit_directory;  // empty = not known
  std::string account, qos, reservation;
};

struct NodeInfo {
  std::string name;
  std::vector<std::string> partitions;
  std::vector<std::string> features;
  std::map<std::string, int> gpus;  // by type; a type without a name is ""
  int cpus = 0;
  bool up = true;         // not down
  bool responds = true;   // to the scheduler; it may be up all the same
  bool draining = false;  // takes no new job
  bool in_use = false;    // by a job

  bool lost() const { return !up || !responds; }
  // But for reservations.
  bool free() const { return !lost() && !draining && !in_use; }
};

enum class JobState {
  pending,
  running,
  completing,  // its processes are ending
  completed,
  failed,  // its script said so
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
  // Its launch, its script or a node failed, in a job that is completing or has ended.
  bool failed = false;
  int restarts = 0;
  std::vector<std::string> nodes;  // that it holds, or held last
  std::string head_node;           // the one that its script runs on; empty while it has none
  std::string submit_directory;
  int cpus = 0;
  std::optional<int64_t> start_s{};  // when it started, or is expected to
  std::optional<int64_t> end_s{};    // when it reaches its time limit, or has ended
};

// Whole nodes for a batch script.
struct JobRequest {
  std::string name = "job";
  std::string partition{};  // empty = the default one
  int nodes = 1;
  std::vector<std::string> node_names{};  // exactly these; empty = any
  std::string feature{};                  // that every node must have; empty = any
  std::string gpu_type{};                 // likewise
  std::optional<int> time_limit_s{};      // rounded up to minutes; nothing = the partition's
  int nice = 0;                           // >= 0; more = later than others
  bool no_kill = false;                   // goes on with what is left when it loses a node
  bool requeue = true;                    // started again when a node fails, or when it is preempted
  std::string script = "true";            // for a shell
};

// One node more for a job that runs, at once or not at all.
struct HelperRequest {
  std::string main_job;
  std::string node;
  std::string partition{};                      // empty = the user's default
  std::optional<int64_t> end_s{};               // of the main job
  std::string account{}, qos{}, reservation{};  // of the main job; empty = not said
};

// A program on a node that the job, or its helper job, has already.
struct StepSpec {
  AllocatedNode node;
  std::vector<std::string> command;
  std::map<std::string, std::string> environment{};  // added to this process's
};

// A program on one node, in a job of its own that lives as long as it does.
struct NodeProgram {
  std::string job_name;
  std::string node;
  std::string partition{};  // empty = the default one
  std::vector<std::string> command;
  bool whole_node = true;            // all of it and unbound, instead of one task's share
  std::optional<int> immediate_s{};  // for the node to be given; nothing = it waits in the queue
  std::optional<int> limit_s{};      // for all of it; it is ended then
  std::string output_file{};         // stdout and stderr; empty = this process's
};

// Nodes of one partition, for a job over several.
struct JobPart {
  std::string partition;
  std::vector<std::string> nodes;
};

}  // namespace sailor
