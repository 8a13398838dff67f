// Where Open MPI's launcher is, and whether ranks are to be started by it at all.
#pragma once

#include <optional>
#include <string>

namespace sailor {

// $SAILOR_MPIRUN, else mpirun.openmpi or mpirun in PATH. Nothing when none is to be
// used: SAILOR_MPIRUN is "none", or this was built without MPI. Throws std::runtime_error when it is not
// there.
std::optional<std::string> mpirun_path();
// Throws when none is to be used, too.
std::string required_mpirun();

}  // namespace sailor
