// slurmstepd: the options must be known there, or Slurm complains about those that the submission carries.
// Nothing else is done.
#include "spank_plugin/contexts.h"
#include "spank_plugin/spank_options.h"

namespace sailor {

int remote_init(spank_t spank) {
  try {
    register_options(spank);
  } catch (...) {
    // A node is drained when a step's plugin fails: never for us.
  }
  return ESPANK_SUCCESS;
}

}  // namespace sailor
