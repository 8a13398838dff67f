// A planned submission, the same for sbatch, salloc and srun. It runs the program twice: the first run
// ("first life") plans and runs the program again with the plan's nodes on its command line; the second one
// submits, with the plan attached. salloc and srun exec their second run; sbatch starts it as a child
// (submission_child.h), and then checks the job: when others took its nodes meanwhile, it is withdrawn and
// replanned, or waits, and prints which.
//
// One object per process, because SPANK has no place for it. Nothing here throws.
#pragma once

#include "spank_plugin/planner_library.h"

namespace sailor {

// In slurm_spank_init_post_opt, called once per component. Ends the process when a planned submission fails:
// Slurm ignores errors of an optional plugin, and would submit the job without its plan.
int submit(spank_t spank, const sailor_submission& submission);

}  // namespace sailor
