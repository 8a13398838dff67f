#include "trainer/launch/mpirun_path.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <stdexcept>

namespace sailor {
namespace fs = std::filesystem;

std::optional<std::string> mpirun_path() {
  const char* chosen = std::getenv("SAILOR_MPIRUN");
  if (chosen && std::string(chosen) == "none") return std::nullopt;
#ifndef SAILOR_WITH_MPI
  return std::nullopt;  // our ranks have no MPI
#endif
  if (chosen && *chosen) return chosen;
  const char* path = std::getenv("PATH");
  for (const char* name : {"mpirun.openmpi", "mpirun"}) {
    std::istringstream folders(path && *path ? path : "/usr/local/bin:/usr/bin:/bin");
    for (std::string folder; std::getline(folders, folder, ':');) {
      const fs::path candidate = fs::path(folder) / name;
      if (access(candidate.c_str(), X_OK) == 0) return candidate;
    }
  }
  throw std::runtime_error(
      "mpirun is not in PATH: install Open MPI (Debian: openmpi-bin), or set SAILOR_MPIRUN (\"none\": start "
      "ranks on this machine without it)");
}

std::string required_mpirun() {
  if (std::optional<std::string> mpirun = mpirun_path()) return *mpirun;
#ifdef SAILOR_WITH_MPI
  throw std::runtime_error("SAILOR_MPIRUN=none only supports runs on this machine: unset it");
#else
  throw std::runtime_error("this build has no MPI and only supports runs on this machine");
#endif
}

}  // namespace sailor
