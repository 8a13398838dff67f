// Properties of a Slurm installation: of its controller from the library, of its programs from their help.
// Needs libslurm, initialised (slurm_view.h).
#pragma once

#include <string>

namespace sailor {

struct SlurmSettings {
  std::string release;  // e.g. 22.05.8
  std::string cluster, plugin_dir, plugstack, auth, select, controller_parameters;
  std::string scheduler, scheduler_parameters;
  bool jobs_are_private = false, nodes_are_private = false, reservations_are_private = false;
  std::string cgroup_conf;  // text of the file beside slurm.conf on this machine; empty without one
};
// Throws std::runtime_error with Slurm's reason when the controller does not answer.
SlurmSettings read_slurm_settings();

// Does srun support this MPI type?
bool offers_mpi(const std::string& kind);
// Does `sbatch --help` list the option?
bool has_submit_option(const std::string& option);
// The command that a person types to run a program on a node.
std::string run_on_node_text(const std::string& partition, const std::string& node,
                             const std::string& program);

}  // namespace sailor
