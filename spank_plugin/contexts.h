// One function per hook and per kind of process that loads the plugin; plugin.cpp selects it. None of them
// throws. Processes of root (slurmd, slurmstepd, prolog and epilog) run no planner code and open no user
// file.
#pragma once

#include "spank_plugin/slurm/spank_api.h"

namespace sailor {

// sbatch and salloc (allocator.cpp).
int allocator_init(spank_t spank);
int allocator_options_done(spank_t spank, int argc, char* const* argv);

// srun (local.cpp).
int local_init(spank_t spank);
int local_options_done(spank_t spank, int argc, char* const* argv);

// slurmstepd (remote.cpp).
int remote_init(spank_t spank);

}  // namespace sailor
