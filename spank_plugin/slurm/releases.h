// What differs between the releases of Slurm's library, 22.05 to 26.05, in one form for all of them. Other
// files include this header instead of calling these functions of Slurm.
#pragma once

#include <slurm/slurm.h>

#include <cstdint>
#include <string>

namespace sailor {

// How a step on one node asks for its GPUs. On a node with the second type of the job's, steps with
// `--gpus=N` wait forever under 24.11; under 22.05 `--gres=gpu:N` is refused for more than the smallest node
// has. Both work under 26.05.
inline constexpr const char* kStepGpus =
    SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(24, 11, 0) ? "--gres=gpu:" : "--gpus=";

// A pointer, which Slurm calls hostlist_t up to 23.02 and hostlist_t* since 23.11.
using HostList = decltype(slurm_hostlist_create(nullptr));

// "n[1-3],x", in the order of the list.
std::string ranged_string(HostList list);

uint32_t job_number(const slurm_job_info_t& job);
uint16_t allocated_cpus(const node_info_t& node);
uint64_t allocated_memory_mb(const node_info_t& node);

// Return SLURM_SUCCESS, or another code with the reason in errno, like Slurm's functions.
int load_job(job_info_msg_t** jobs, uint32_t job_id);
int kill_job(uint32_t job_id);

// slurm.conf as this process has read it; nullptr if it has not.
const slurm_conf_t* settings();
// AccountingStorageEnforce=limits in it.
bool limits_are_enforced();
// Of the cluster and this slurm.conf, as part of a file's name; empty if not known.
std::string identity();

void free_settings(slurm_conf_t* settings);

}  // namespace sailor
