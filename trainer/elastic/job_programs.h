// The programs that the controller of a job starts as its children: agents on nodes of the job, queries of
// the cluster, keepers of helper jobs. All belong to this installation.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

#include "planner/scheduler/scheduler.h"
#include "trainer/elastic/controller.h"
#include "trainer/elastic/growth.h"

namespace sailor {

// Starts an agent on a node, with its output in the file `log`. Throws std::runtime_error.
std::function<pid_t(const std::string& node)> agent_starter(const std::string& log);

// The options for growth; keepers write to the file `log`. Nothing if the job does not grow.
Growth::Options growth_options(const ControllerOptions& options, const OwnJob& own_job,
                               const std::string& log);

}  // namespace sailor
