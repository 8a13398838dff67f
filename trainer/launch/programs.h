// Starts the ranks of a training program that is not Sailor's own: a step of the job on every node of the
// plan (scheduler.h), in which `sailor-agent programs` starts the node's ranks with their environment
// (rank_environment.h). As with `torchrun`, the first rank that fails ends all others.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/scheduler/scheduler.h"
#include "planner/spec/framework_style.h"

namespace sailor {

struct ProgramLaunch {
  const Plan& plan;  // placed
  FrameworkStyle::RankOrder order = FrameworkStyle::RankOrder::pipelines;
  std::vector<std::string> command;
  Allocation allocation;
  std::string plan_file;          // the plan, for the ranks; all nodes can read it
  int port = 0;                   // of rank 0; 0 = chosen; by the job alone in become_rank()
  int generation = 1;             // of an elastic job, whose programs start again
  std::string change_file{};      // of an elastic job: says why the ranks are told to end
  std::string steps_directory{};  // for what ranks tell of their steps; empty = nobody reads it
  double grace_s = 30;            // between a request to end and SIGKILL
  std::function<void(const std::string& text)> say{};  // a line for the user
};

// What the nodes of the plan run, with this environment: run_programs_of_node().
struct NodePrograms {
  std::vector<std::string> command;
  std::map<std::string, std::string> environment;
};
NodePrograms node_programs(Scheduler& scheduler, const ProgramLaunch& launch);

// Returns when all ranks have ended: 0, or the exit code of the first step that failed, after a wait if a
// node does not answer (silent_nodes.h). Signals that ask the job to stop are sent on to the ranks; what is
// left `grace_s` later is killed. `meanwhile` is called several times a second. Call from a single-threaded
// process. Throws std::runtime_error if the plan's nodes are not in the allocation.
int launch_programs(
    Scheduler& scheduler, const ProgramLaunch& launch, const std::function<void()>& meanwhile = [] {});

// The ranks of this node, in its step: what `sailor-agent programs` does. The environment is what
// launch_programs() set: SAILOR_PLAN, SAILOR_RANK_ORDER, MASTER_ADDR, MASTER_PORT. Returns the exit code.
int run_programs_of_node(const std::string& node, const std::vector<std::string>& command);

// This process is one task of a node (srun starts one per rank): sets its environment and becomes the
// program. `local_rank`: of the task on its node.
[[noreturn]] void become_rank(Scheduler& scheduler, const ProgramLaunch& launch, const std::string& node,
                              int local_rank);

}  // namespace sailor
