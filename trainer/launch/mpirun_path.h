// The path of Open MPI's launcher, and whether ranks are started with it.
#pragma once

#include <optional>
#include <string>

namespace sailor {

// $SAILOR_MPIRUN, else mpirun.openmpi or mpirun in PATH. Nothing if SAILOR_MPIRUN is "none" or this was built
// without MPI. Throws std::runtime_error if it is not found.
std::optional<std::string> mpirun_path();
// Like the above, but throws in these cases too.
std::string required_mpirun();

}  // namespace sailor
