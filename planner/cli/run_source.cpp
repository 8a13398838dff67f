#include "planner/cli/run_source.h"

#include <filesystem>

#include "planner/history/find_run.h"
#include "planner/inputs/planning_record.h"
#include "planner/scheduler/scheduler.h"
#include "planner/spec/error.h"

namespace sailor::cli {
namespace {

// The run's plan, or the only file that was named, which is a plan because the job is the run's.
void take_job_and_plan(const std::string& directory, std::string& job, std::string& plan) {
  if (!job.empty() && !plan.empty())
    throw InputError("--run: the job is the run's own, give no other: " + job);
  if (plan.empty()) plan = job.empty() ? directory + "/plan.json" : job;
  job = directory + "/job.yaml";
}

void take_cluster(const std::string& planning, std::string& cluster) {
  if (cluster.empty() && !planning.empty()) cluster = planning + "/cluster.yaml";
}

// What is on the command line stands.
void take_options(const PlanningOptions& recorded, PlanSource& source) {
  const PlanOverrides given = std::move(source.overrides);
  PlanOverrides& all = source.overrides = recorded.overrides;
  if (given.objective) all.objective = given.objective;
  for (const Expense expense : kExpenses)
    if (given.most[expense]) all.most[expense] = given.most[expense];
  if (given.min_iterations_per_s) all.min_iterations_per_s = given.min_iterations_per_s;
  for (const auto& [type, count] : given.max_gpus) all.max_gpus[type] = count;
  if (!given.zones.empty()) all.zones = given.zones;
  const PlanSource usual;
  if (source.search_space == usual.search_space) source.search_space = to_string(recorded.request.space);
  if (source.cost_model == usual.cost_model) source.cost_model = to_string(recorded.request.cost_model);
  if (!source.allow) source.allow = recorded.request.allow;
  if (!source.time_limit_s) source.time_limit_s = recorded.request.time_limit_s;
  if (!source.effort) source.effort = recorded.request.effort;
}

}  // namespace

std::string config_of_run(const std::string& directory, const std::string& given) {
  if (!given.empty()) return given;
  const std::string planning = planning_of(directory);
  return planning.empty() ? "" : planning + "/sailor.yaml";
}

ExplainCommand about_run(ExplainCommand command) {
  const std::string directory = find_run(command.run, own_job_id(site_scheduler()), "sailor explain --run");
  take_job_and_plan(directory, command.source.job, command.plan);
  command.source.config = config_of_run(directory, command.source.config);
  const std::string planning = planning_of(directory);
  take_cluster(planning, command.source.cluster);
  if (!planning.empty()) take_options(load_planning_options(planning + "/options.yaml"), command.source);
  return command;
}

SimulateCommand about_run(SimulateCommand command) {
  const std::string directory = find_run(command.run, own_job_id(site_scheduler()), "sailor simulate --run");
  take_job_and_plan(directory, command.job, command.plan);
  command.config = config_of_run(directory, command.config);
  take_cluster(planning_of(directory), command.cluster);
  return command;
}

}  // namespace sailor::cli
