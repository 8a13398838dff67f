#include "trainer/elastic/run_setup.h"

#include <fmt/format.h>

#include <ostream>

#include "planner/spec/error.h"

namespace sailor {

Replanner::Options keep_planning(const JobSpec& job, const Plan& plan, const ControllerOptions& options) {
  PlanningFiles files = options.planning;
  try {
    if (files.empty()) files = Replanner(job, plan, options.replanning).planning_files();
  } catch (const InputError&) {
    // Stages share a GPU: no cluster has such nodes, so replanning is impossible.
  }
  write_planning(options.run_directory, files);
  Replanner::Options replanning = options.replanning;
  if (!files.empty()) replanning.site_config = planning_of(options.run_directory) + "/sailor.yaml";
  return replanning;
}

std::map<std::string, std::string> agent_environment(const ControllerOptions& options, const OwnJob& own_job,
                                                     const ControlEndpoint& endpoint) {
  std::map<std::string, std::string> environment = endpoint.to_environment();
  if (options.elastic) environment["SAILOR_ELASTIC"] = "1";
  if (options.saved_steps) environment["SAILOR_SAVES"] = "1";
  environment["SAILOR_NODES"] = to_text(options.allocation.nodes);
  environment["SAILOR_JOB_ID"] = options.allocation.job_id;
  environment["SAILOR_RESTART_COUNT"] = std::to_string(own_job.restarts);
  environment["SAILOR_RUN_DIRECTORY"] = options.run_directory;
  environment["SAILOR_JOB_DIRECTORY"] = options.job_directory;
  return environment;
}

void write_secrets(std::optional<JobSecretsFile>& file, const std::string& run_directory,
                   const ControlEndpoint& endpoint, bool encrypts_data, std::ostream& out) {
  file.emplace(run_directory, JobSecrets{endpoint.client.secret_key, make_data_secret(), encrypts_data});
  if (file->is_private()) return;
  out << fmt::format(
             "{}: this file system gives files permissions of its own; others may be able to read the job's "
             "secrets there",
             run_directory)
      << std::endl;
}

bool is_ending(const std::optional<QueuedJob>& job) {
  return job && (job->preempted || job->out_of_time || job->state != JobState::running);
}

}  // namespace sailor
