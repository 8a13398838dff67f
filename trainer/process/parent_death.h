// Ends this process when the one that started it ends, even by SIGKILL.
#pragma once

namespace sailor {

// Call it before threads start. PR_SET_PDEATHSIG (prctl(2)) signals also when only the thread that started
// this process ends, as threads of launchers do: the signal's handler ends the process only if the parent has
// changed. Uses the signal SIGRTMAX.
void end_with_parent();

}  // namespace sailor
