// What the controllers of jobs set up for a run alike: the planner's inputs, the environment of agents, the
// job's secrets.
#pragma once

#include <iosfwd>
#include <map>
#include <optional>
#include <string>

#include "planner/scheduler/scheduler.h"
#include "trainer/control/control_endpoint.h"
#include "trainer/control/job_secrets.h"
#include "trainer/elastic/controller.h"

namespace sailor {

// Writes planning/. Returns the options with which the job plans again: with these files, so that all
// predictions of a run use the same data even when the site's files change. `plan` is placed, maybe on
// imagined nodes.
Replanner::Options keep_planning(const JobSpec& job, const Plan& plan, const ControllerOptions& options);

// The environment of agents and ranks, on whatever node they are started.
std::map<std::string, std::string> agent_environment(const ControllerOptions& options, const OwnJob& own_job,
                                                     const ControlEndpoint& endpoint);

// The file with new secrets. Says so in `out` if others may be able to read it.
void write_secrets(std::optional<JobSecretsFile>& file, const std::string& run_directory,
                   const ControlEndpoint& endpoint, bool encrypts_data, std::ostream& out);

// Whether the scheduler is ending the whole job.
bool is_ending(const std::optional<QueuedJob>& job);

}  // namespace sailor
