// The command lines of Slurm's programs, and parsers of their output. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/scheduler/continuation.h"
#include "planner/scheduler/jobs.h"

namespace sailor {

// srun, for a step on a node of a job.
std::vector<std::string> srun_step(const StepSpec& step);
// srun, for a program in a job of its own.
std::vector<std::string> srun_program(const NodeProgram& program);
// salloc, for a program on the first node of a job over these parts.
std::vector<std::string> salloc_over_parts(const std::string& name, const std::vector<JobPart>& parts,
                                           const std::vector<std::string>& command);

// sbatch; with `test_only` it submits nothing and prints when the job could start.
std::vector<std::string> sbatch_script(const JobRequest& request, bool test_only);
// sbatch, for the next part of a training: `script` is the one of the job that ends.
std::vector<std::string> sbatch_next_part(const Resubmission& submission, const std::string& name,
                                          const std::string& ending_job, const std::string& script);
// The job id in the output of `--parsable`, among other lines; nothing if there is none.
std::optional<std::string> submitted_id(const std::string& sbatch_output);
// The start time, since 1970, in the output of `test_only`.
std::optional<int64_t> promised_start(const std::string& sbatch_output);

// sbatch, for a helper job.
std::vector<std::string> sbatch_helper(const HelperRequest& request, int64_t now_s);
std::string helper_job_name(const std::string& main_job);
// Of any job.
bool is_helper_job_name(const std::string& name);

}  // namespace sailor
