// Inputs of a verb for a run: those in the run's planning record (inputs/planning_record.h).
#pragma once

#include <string>

#include "planner/cli/commands.h"

namespace sailor::cli {

// The site config in the planning record of `directory`, unless `given` names another; empty if the run has
// none.
std::string config_of_run(const std::string& directory, const std::string& given);

// Explains the plan of the run, on its nodes and under its submission's limits, unless the command line
// overrides them. Throws InputError if there is no such run.
ExplainCommand about_run(ExplainCommand command);
SimulateCommand about_run(SimulateCommand command);

}  // namespace sailor::cli
