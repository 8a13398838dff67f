// The environment variables that describe a Slurm job to its processes and to Slurm's programs: all SLURM_*,
// SBATCH_*, SALLOC_* and SRUN_* variables that this project reads or removes. Changes the environment of the
// process: not while other threads use it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "planner/scheduler/allocation.h"
#include "planner/scheduler/jobs.h"

namespace sailor {

std::string slurm_job_id();  // of this process's job; empty outside
std::string slurm_job_name();
std::optional<OwnJob> slurm_own_job();
std::string slurm_own_node();         // of a process in a step
std::optional<int> slurm_own_task();  // its number on the node

// The variables of this process that are defaults of sbatch's options.
std::map<std::string, std::string> sbatch_defaults();

// A value that the plugin sends with a job: set by spank_job_control_setenv(), Slurm gives it to the job as
// SLURM_SPANK_<NAME>, independent of --export, also after a requeue.
std::optional<std::string> job_variable(const std::string& name);
// for processes that this one starts
void set_job_variable(const std::string& name, const std::string& value);
void forget_job_variable(const std::string& name);

// Nodes of SLURM_JOB_NODELIST (of a component: with its suffix), and what else the batch step knows of them.
// `expand` expands a host list. Throws std::runtime_error outside a job.
std::vector<AllocatedNode> nodes_of_job(std::vector<std::string> (*expand)(const std::string& hosts));
// SLURM_JOB_END_TIME; nothing if Slurm does not set it.
std::optional<int64_t> job_end_in_environment();
// "4(x2),8" -> {4, 4, 8}. Throws std::runtime_error.
std::vector<int> parse_cpus_per_node(const std::string& text);

// srun reads environment variables as defaults of options. The job's own values (memory, tasks, binding) are
// wrong for a step that only supervises ranks, and some contradict the options of such a step.
void forget_srun_defaults();
// Removes everything that ties Slurm's programs to this process's job, and defaults of their options. Options
// of other SPANK plugins, such as the container of the job, stay.
void forget_slurm_job();

}  // namespace sailor
