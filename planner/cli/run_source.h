// A verb that is asked about a run: the inputs are those of the run's planning (search/planning_record.h).
#pragma once

#include <string>

#include "planner/cli/commands.h"

namespace sailor::cli {

// The site config that `run`, a run's directory, was planned with, unless `given` names another; empty, where
// the run keeps none.
std::string config_of_run(const std::string& directory, const std::string& given);

// Explains the plan of the run, on the nodes that there were and under the submission's limits, unless the
// command line says otherwise. Throws InputError where there is no such run.
ExplainCommand about_run(ExplainCommand command);
SimulateCommand about_run(SimulateCommand command);

}  // namespace sailor::cli
