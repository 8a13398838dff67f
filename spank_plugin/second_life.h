// What the first life of a planned sbatch (which plans, then runs itself again with the plan's options)
// leaves to the second (which submits): the variables that go with the job, in a memory file that survives
// exec. The environment names the file and the process, so that neither a child nor a later sbatch takes it
// for its own; the second life removes the name at once.
#pragma once

#include <optional>

#include "planner/inputs/carried_plan.h"

namespace sailor {

// Throws std::runtime_error.
void leave_to_second_life(const EnvironmentVariables& variables);

// What the first life left; nothing when this is no second life. Clears the trace of it from the environment.
std::optional<EnvironmentVariables> take_from_first_life();

}  // namespace sailor
