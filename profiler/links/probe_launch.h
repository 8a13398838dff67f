// Starts the ranks of a probe: `sailor probe` replaces itself by a launcher that starts it again as ranks.
// Inside a Slurm job they are started like those of a training job (trainer/launch/launcher.h), over all
// components of a heterogeneous job.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace sailor {

// Has mpirun or srun started this process as a rank?
bool is_launched();

// Each replaces this process by a launcher that starts this program as ranks, with `arguments`. Throw
// InputError, std::runtime_error.
[[noreturn]] void become_ranks_here(int ranks, const std::vector<std::string>& arguments);
// On every node of this process's job; kind_of_node() then returns their kinds. `per_node` 0: a rank for each
// GPU of a node, two where ranks compute on processors.
[[noreturn]] void become_ranks_of_job(int per_node, const std::vector<std::string>& arguments);
// In a new job of up to two free nodes of every GPU type and zone; `arguments` lose "--on-nodes".
[[noreturn]] void become_allocation(std::vector<std::string> arguments);

// The kind of a node of the job, according to the live cluster; nothing unless started by
// become_ranks_of_job().
struct NodeKind {
  std::string gpu_type;
  std::string zone;
};
std::optional<NodeKind> kind_of_node(const std::string& node);

}  // namespace sailor
