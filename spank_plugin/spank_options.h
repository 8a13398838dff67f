// Registers the --sailor-* options with Slurm and collects the values that it hands back through callbacks.
#pragma once

#include "spank_plugin/spank_api.h"
#include "spank_plugin/submit_options.h"

namespace sailor {

// In the contexts of srun, sbatch, salloc, and of job steps (where values are ignored).
void register_options(spank_t spank);

// What the command line and #SBATCH lines of this process gave so far.
const OptionValues& given_options();

// A job that was submitted with our options hands them to every Slurm command inside it by environment; there
// they mean nothing.
void forget_options_of_enclosing_job();
// Likewise its plan, for a job submitted from within: a step belongs to the job and keeps it.
void forget_plan_of_enclosing_job();

}  // namespace sailor
