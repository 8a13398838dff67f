// What the controller of a job starts while it runs, as children of its process: agents on nodes of the job,
// looks at the cluster, keepers of helper jobs. All are programs of this installation.
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

// How the job grows; keepers write to the file `log`. Nothing, where it does not.
Growth::Options growth_options(const ControllerOptions& options, const OwnJob& own_job,
                               const std::string& log);

}  // namespace sailor
