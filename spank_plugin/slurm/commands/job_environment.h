// The variables by which a process knows its Slurm job, and by which Slurm's programs know it: all SLURM_*,
// SBATCH_*, SALLOC_* and SRUN_* variables that this project reads or removes. Changes the environment of the
// process: not while other threads use it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/scheduler/allocation.h"
#include "planner/scheduler/jobs.h"

namespace sailor {

std::string slurm_job_id();  // of the job that this process is in; empty outside
std::optional<OwnJob> slurm_own_job();
std::string slurm_own_node();  // of a process in a step

// What the plugin sends along with a job: set by spank_job_control_setenv(), Slurm hands it to the job as
// SLURM_SPANK_<NAME>, whatever --export says, also after a requeue.
std::optional<std::string> job_variable(const std::string& name);
void set_job_variable(const std::string& name, const std::string& value);  // for what this process starts
void forget_job_variable(const std::string& name);
// A job that was submitted with our options hands them to every Slurm command inside it by environment; there
// they mean nothing.
void forget_options_of_enclosing_job();
// Likewise its plan, for a job submitted from within: a step belongs to the job and keeps it.
void forget_plan_of_enclosing_job();

// Nodes as SLURM_JOB_NODELIST (of a component: its suffix added) has them, and what else the batch step knows
// of them. `expand` makes names of a host list. Throws std::runtime_error outside a job.
std::vector<AllocatedNode> nodes_of_job(std::vector<std::string> (*expand)(const std::string& hosts));
// SLURM_JOB_END_TIME; nothing when Slurm does not set it.
std::optional<int64_t> job_end_in_environment();
// "4(x2),8" -> {4, 4, 8}. Throws std::runtime_error.
std::vector<int> parse_cpus_per_node(const std::string& text);

// srun reads variables as defaults of options. The job's own values (memory, tasks, binding) do not fit a
// step that only watches over ranks, and some contradict the options of such a step.
void forget_srun_defaults();
// Removes everything by which Slurm's programs know the job that this process runs in, and defaults of their
// options.
void forget_slurm_job();

}  // namespace sailor
