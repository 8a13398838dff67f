// Where the programs of this installation lie: beside the running one (a build tree), or in
// PREFIX/libexec/sailor.
#pragma once

#include <optional>
#include <string>

namespace sailor {

// Absolute path of a program of this project, e.g. "sailor-rank". Throws std::runtime_error naming the places
// that were tried.
std::string program_path(const std::string& name);

// Open MPI's launcher: $SAILOR_MPIRUN, else mpirun.openmpi or mpirun in PATH. Nothing when none is to be
// used: SAILOR_MPIRUN is "none", or this was built without MPI. Throws std::runtime_error when it is not
// there.
std::optional<std::string> mpirun_path();
// Throws when none is to be used, too.
std::string required_mpirun();

}  // namespace sailor
