// A planned submission, the same for sbatch, salloc and srun. It runs the program twice: the first run
// ("first life") plans and runs the program again with the plan's nodes on its command line; the second one
// submits, with the plan attached. salloc and srun exec their second run; sbatch starts it as a child
// (submission_child.h), and then checks the job: when others took its nodes meanwhile, it is withdrawn and
// replanned, or waits, and prints which.
//
// Without a --sailor-* option none of this happens: no file is opened, no RPC is sent. One object per
// process, because SPANK has no place for it. Nothing here throws.
#pragma once

#include "spank_plugin/slurm/spank_api.h"
#include "spank_plugin/slurm/submit_process.h"

namespace sailor {

// In slurm_spank_init: registers the options, and detects the second run.
void begin_submission(spank_t spank, SubmitProgram program);

// In slurm_spank_init_post_opt, called once per component. Ends the process when a planned submission fails:
// Slurm ignores errors of an optional plugin, and would submit the job without its plan.
int finish_options(spank_t spank, SubmitProgram program, int argc, char* const* argv);

}  // namespace sailor
