// Slurm's strings of trackable resources (TRES), as slurmctld reports them for a job. Pure.
//
//     gres/gpu:NAME:4   gres:gpu:4             requested per node (tres_per_node; the second up to 23.02)
//     cpu=8,mem=2G,node=2,gres/gpu:NAME=8      of the whole job
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace sailor {

// The GPUs that a job of `nodes` nodes needs of each of them, by name in requests ("gpu:NAME", or "gpu" of
// any one type). `per_node` counts if it names GPUs, else the equal part of `of_job`, rounded up.
std::map<std::string, int> gpus_of_request(const std::string& per_node, const std::string& of_job, int nodes);

// Memory of a job; 0 if it is not tracked.
int64_t memory_mb_in(const std::string& of_job);

}  // namespace sailor
