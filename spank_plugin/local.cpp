// srun: plans like sbatch when it asks for a job of its own; inside a job it starts a step, and is left
// alone.
#include "spank_plugin/contexts.h"
#include "spank_plugin/planned_submission.h"

namespace sailor {

int local_init(spank_t spank) {
  begin_submission(spank, SubmitProgram::srun);
  return ESPANK_SUCCESS;
}

int local_options_done(spank_t spank, int argc, char* const* argv) {
  return finish_options(spank, SubmitProgram::srun, argc, argv);
}

}  // namespace sailor
