// From the limits of a submission to a checked plan on nodes that are free now. Reads the catalog and the
// profiles of the site config; otherwise pure: no Slurm calls, no output.
#pragma once

#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "planner/inputs/planning_record.h"
#include "planner/inputs/submit_options.h"
#include "planner/plan/plan.h"
#include "planner/plan/queued_nodes.h"
#include "planner/spec/job_spec.h"
#include "planner/spec/site_config.h"
#include "planner/start/planned_start.h"
#include "spank_plugin/slurm/allocation.h"
#include "spank_plugin/slurm/job_shape.h"
#include "spank_plugin/slurm/live_cluster.h"

namespace sailor {

// The submission is rejected, with the reason on one line and an exit code (planner/spec/error.h).
class Refusal : public std::runtime_error {
 public:
  Refusal(int exit_code, const std::string& reason) : std::runtime_error(reason), exit_code_(exit_code) {}
  int exit_code() const { return exit_code_; }

 private:
  int exit_code_;
};

struct PlannedJob {
  Plan plan;  // placed
  std::vector<Component> components;
  std::string site_config;  // absolute path
  PlanningFiles planning;   // the planner's inputs
  std::string table;        // for people: the candidates, or the given plan by stage
  std::string comment;      // comment of the job, one line
  double least_s = 0;       // time limit that the job waits for at least; 0 = that of the submission
  bool waits = false;       // other jobs use some of its nodes, which the user accepted
  std::vector<QueuedNodes> queued{};  // for which it queues while it runs
  JobShape shape;                     // what Slurm may choose instead of the planned nodes
};

// The free nodes.
using ClusterSource = std::function<LiveCluster()>;

// Searches for the best plan within wishes.max_nodes, or checks options.plan_file. `cluster` applies the
// other wishes. Throws InputError, Refusal (no feasible plan, time limit), or std::runtime_error; exceptions
// of `cluster` pass through.
// `start` is when the nodes come free.
PlannedJob plan_job(const SubmitOptions& options, JobSpec job, const SiteConfig& site,
                    const NodeWishes& wishes, const ClusterSource& cluster,
                    const std::optional<PlannedStart>& start = {});

}  // namespace sailor
