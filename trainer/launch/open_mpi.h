// Open MPI's launcher: where it is, its release, and what differs between releases. Up to 4.1, mpirun starts
// its own daemons (ORTE). Since 5.0, it is a front end of PRRTE, whose parameters have other names.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace sailor {

struct Mpirun {
  std::string path;
  int release = 0;  // 4, 5, 6
};

// $SAILOR_MPIRUN, else mpirun.openmpi or mpirun in PATH. Nothing if SAILOR_MPIRUN is "none" or this was built
// without MPI. Throws std::runtime_error if it is not found, or is not Open MPI.
std::optional<Mpirun> find_mpirun();

// Of the output of `mpirun --version`, "mpirun (Open MPI) 5.0.7": 5. Throws std::runtime_error.
int open_mpi_release(const std::string& version_text, const std::string& path);

// Options by which mpirun starts its daemons with `remote_shell HOST COMMAND`, as processes that stay in the
// foreground. If that is empty: no daemons, all ranks on this machine.
std::vector<std::string> daemon_options(int release, const std::string& remote_shell);

// The command of a daemon, so that it takes the name of its node from Slurm instead of the host. Open MPI 6
// mistakes daemons on one host for one another. For commands of Open MPI 4, which does not, it is unchanged.
std::string with_node_name_of_slurm(std::string daemon_command);

}  // namespace sailor
