// Registers the --sailor-* options with Slurm and collects the values from its callbacks.
#pragma once

#include "planner/inputs/submit_options.h"
#include "spank_plugin/slurm/spank_api.h"

namespace sailor {

// In the contexts of srun, sbatch, salloc, and of job steps (where values are ignored).
void register_options(spank_t spank);

// Values from the command line and #SBATCH lines so far.
const OptionValues& given_options();

}  // namespace sailor
