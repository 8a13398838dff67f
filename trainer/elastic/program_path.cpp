#include "trainer/elastic/program_path.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <stdexcept>

namespace sailor {
namespace fs = std::filesystem;

std::string program_path(const std::string& name) {
  const fs::path here = fs::read_symlink("/proc/self/exe").parent_path();
  const fs::path libexec = here.parent_path() / "libexec" / "sailor";
  for (const fs::path& folder : {here, libexec}) {
    const fs::path candidate = folder / name;
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  throw std::runtime_error(
      fmt::format("{} is missing: looked in {} and {}", name, here.string(), libexec.string()));
}

std::string mpirun_path() {
  if (const char* chosen = std::getenv("SAILOR_MPIRUN"); chosen && *chosen) return chosen;
  const char* path = std::getenv("PATH");
  for (const char* name : {"mpirun.openmpi", "mpirun"}) {
    std::istringstream folders(path && *path ? path : "/usr/local/bin:/usr/bin:/bin");
    for (std::string folder; std::getline(folders, folder, ':');) {
      const fs::path candidate = fs::path(folder) / name;
      if (access(candidate.c_str(), X_OK) == 0) return candidate;
    }
  }
  throw std::runtime_error(
      "mpirun is not in PATH: install Open MPI (Debian: openmpi-bin), or set SAILOR_MPIRUN");
}

}  // namespace sailor
