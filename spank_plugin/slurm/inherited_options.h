/* What a job that was submitted with our options leaves in the environment of the Slurm commands inside it.
 * It has no meaning for the jobs that they submit. C. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/* Removes the options and, unless this process starts a step of that job, its plan. */
void sailor_forget_inherited(int starts_jobs_only);

#ifdef __cplusplus
}
#endif
