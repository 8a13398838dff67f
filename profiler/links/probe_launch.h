// How the ranks of a probe come to be: `sailor probe` becomes the program that starts it again as ranks.
// Inside a Slurm job they are started like a training job's (trainer/elastic/launcher.h), over any components
// of a heterogeneous job.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace sailor {

// Has mpirun or srun started this process as a rank?
bool is_launched();

// Each becomes another program that ends in this one, started as ranks with `arguments`. Throw InputError,
// std::runtime_error.
[[noreturn]] void become_ranks_here(int ranks, const std::vector<std::string>& arguments);
// On every node of the job that this process is in; kind_of_node() then knows what they are.
[[noreturn]] void become_ranks_of_job(int per_node, const std::vector<std::string>& arguments);
// In a new job of up to two free nodes of every GPU type and zone; `arguments` lose "--on-nodes".
[[noreturn]] void become_allocation(std::vector<std::string> arguments);

// Of a node of the job, as the live cluster says; nothing when this was not started by become_ranks_of_job().
struct NodeKind {
  std::string gpu_type;
  std::string zone;
};
std::optional<NodeKind> kind_of_node(const std::string& node);

}  // namespace sailor
