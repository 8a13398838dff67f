// srun: its options are known, so that `srun --help` shows them, and refused: this version plans batch jobs
// only.
#include <unistd.h>

#include <cstdio>

#include "planner/spec/error.h"
#include "spank_plugin/contexts.h"
#include "spank_plugin/spank_options.h"

namespace sailor {

int local_init(spank_t spank) {
  try {
    forget_options_of_enclosing_job();
    register_options(spank);
  } catch (...) {
    // A plain srun runs on without our options.
  }
  return ESPANK_SUCCESS;
}

int local_options_done() {
  if (given_options().empty()) return ESPANK_SUCCESS;
  fprintf(stderr, "sailor: srun --%s: only sbatch is supported in this version; submit the job with sbatch\n",
          given_options().begin()->first.c_str());
  fflush(stderr);
  _exit(kBadInput);
}

}  // namespace sailor
