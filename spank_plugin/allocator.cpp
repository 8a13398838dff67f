// sbatch and salloc.
#include "spank_plugin/contexts.h"
#include "spank_plugin/planned_submission.h"

namespace sailor {

int allocator_init(spank_t spank) {
  begin_submission(spank, submit_program());
  return ESPANK_SUCCESS;
}

int allocator_options_done(spank_t spank, int argc, char* const* argv) {
  return finish_options(spank, submit_program(), argc, argv);
}

}  // namespace sailor
