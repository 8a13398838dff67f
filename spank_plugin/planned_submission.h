// A planned submission, the same for sbatch, salloc and srun. It has two lives: the first plans and runs the
// program again with the plan's nodes on its command line; the second submits, with the plan attached. salloc
// and srun become their second life; sbatch has it as a child (submission_child.h), and looks at the job
// then: when others took its nodes in the last moment, it is withdrawn and planned again, or waits, and says
// so.
//
// Without a --sailor-* option nothing of this happens: no file is opened, no RPC is made. One object per
// process; SPANK offers no place of its own for it. Nothing here throws.
#pragma once

#include "spank_plugin/slurm/spank_api.h"
#include "spank_plugin/slurm/submit_process.h"

namespace sailor {

// In slurm_spank_init: registers the options, and finds out which life this is.
void begin_submission(spank_t spank, SubmitProgram program);

// In slurm_spank_init_post_opt, called once per component. Ends the process when a planned submission fails:
// an optional plugin's errors are ignored by Slurm, and the job would be submitted without its plan.
int finish_options(spank_t spank, SubmitProgram program, int argc, char* const* argv);

}  // namespace sailor
