// Passes the variables of a job from the first run of a planned sbatch (which plans, then runs itself again
// with the plan's options) to the second (which submits), in a memory file that survives exec. The
// environment names the file and the process, so that neither a child nor a later sbatch uses it by mistake;
// the second run removes the name at once.
#pragma once

#include <optional>

#include "planner/inputs/carried_plan.h"

namespace sailor {

// Throws std::runtime_error.
void leave_to_second_life(const EnvironmentVariables& variables);

// The variables from the first run; nothing if this is not a second run. Removes them from the environment.
std::optional<EnvironmentVariables> take_from_first_life();

}  // namespace sailor
