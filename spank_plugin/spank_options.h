// Registers the --sailor-* options with Slurm and collects the values that it hands back through callbacks.
#pragma once

#include "planner/inputs/submit_options.h"
#include "spank_plugin/slurm/spank_api.h"

namespace sailor {

// In the contexts of srun, sbatch, salloc, and of job steps (where values are ignored).
void register_options(spank_t spank);

// What the command line and #SBATCH lines of this process gave so far.
const OptionValues& given_options();

}  // namespace sailor
