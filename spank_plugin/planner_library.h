/* The interface between spank_sailor.so, the small C plugin that every sbatch, salloc, srun and slurmstepd
 * loads, and sailor_planner.so beside it, which only planned submissions open. C. */
#pragma once

#include "planner/inputs/submit_option_table.h"
#include "spank_plugin/slurm/spank_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Changes with this header: the two libraries are installed together, and an upgrade may be caught half-way.
 */
#define SAILOR_PLANNER_INTERFACE 2

enum sailor_program { SAILOR_SBATCH, SAILOR_SALLOC, SAILOR_SRUN };

struct sailor_submission {
  unsigned int interface;                  /* SAILOR_PLANNER_INTERFACE */
  enum sailor_program program;             /* that this process is */
  const char* values[sailor_option_count]; /* of sailor_options, in their order; null = not given */
  long stdin_offset; /* where standard input was before sbatch read a script from it; -1 = a pipe, read and
                        gone */
  int argc;          /* words of the plugin's line in plugstack.conf */
  char* const* argv;
};

/* Moves a batch script that comes through a pipe into memory, and makes that standard input: a planned script
 * is read twice. Before sbatch reads it. Never fails: in case of doubt nothing is done. */
typedef void sailor_keep_script_function(void);
void sailor_keep_script(void);

/* Plans and submits this process's job, once for every component. Returns in the second of the two runs of
 * the program (planned_submission.h), with the plan attached, and otherwise ends the process. Nonzero: not
 * done, and nothing was submitted. */
typedef int sailor_submit_function(spank_t spank, const struct sailor_submission* submission);
int sailor_submit(spank_t spank, const struct sailor_submission* submission);

#ifdef __cplusplus
}
#endif
