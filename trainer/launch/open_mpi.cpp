#include "trainer/launch/open_mpi.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <stdexcept>

#include "planner/process/subprocess.h"

namespace sailor {
namespace {

namespace fs = std::filesystem;

constexpr int kFirstWithPrrte = 5;

#ifdef SAILOR_WITH_MPI
std::string path_of_mpirun(const char* chosen) {
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
      "ranks without it)");
}
#endif

}  // namespace

int open_mpi_release(const std::string& version_text, const std::string& path) {
  int release = 0;
  for (const std::string_view name :
       {"(Open MPI) ", "(OpenRTE) "}) {  // the latter from Debian's mpirun.openmpi 4
    const size_t place = version_text.find(name);
    if (place != std::string::npos) release = std::atoi(version_text.c_str() + place + name.size());
  }
  if (release == 0)
    throw std::runtime_error(
        fmt::format("{} is not the mpirun of Open MPI (`{} --version`): set SAILOR_MPIRUN", path, path));
  return release;
}

std::optional<Mpirun> find_mpirun() {
  const char* chosen = std::getenv("SAILOR_MPIRUN");
  if (chosen && std::string(chosen) == "none") return std::nullopt;
#ifdef SAILOR_WITH_MPI
  const std::string path = path_of_mpirun(chosen);
  return Mpirun{path, open_mpi_release(run_and_read({path, "--version"}), path)};
#else
  return std::nullopt;  // our ranks have no MPI
#endif
}

std::vector<std::string> daemon_options(int release, const std::string& remote_shell) {
  const bool prrte = release >= kFirstWithPrrte;
  std::vector<std::string> options;
  auto option = [&](const std::string& name, const std::string& value) {
    options.insert(options.end(), {prrte ? "--prtemca" : "--mca", name, value});
  };
  option("ras", "^slurm");
  // The daemons would share their topology at an address that they assume to be free. Sometimes it is not,
  // and they crash. Nothing is bound here, so the topology is not needed.
  option("rtc_hwloc_vmhole", "none");
  if (remote_shell.empty() && !prrte) {
    option("plm", "isolated");
    return options;
  }
  const std::string starter = prrte ? "ssh" : "rsh";
  option("plm", starter);
  // PRRTE looks for the program even if there is nothing to start.
  option("plm_" + starter + "_agent", remote_shell.empty() ? "/bin/false" : remote_shell);
  option("plm_" + starter + "_no_tree_spawn", "1");
  // Otherwise the daemons would leave their Slurm step.
  if (prrte)
    options.push_back("--leave-session-attached");
  else
    option("orte_leave_session_attached", "1");
  return options;
}

std::string with_node_name_of_slurm(std::string daemon_command) {
  constexpr std::string_view kFromHost = "--prtemca ess \"env\"", kFromSlurm = "--prtemca ess \"slurm\"";
  const size_t place = daemon_command.find(kFromHost);
  if (place != std::string::npos) daemon_command.replace(place, kFromHost.size(), kFromSlurm);
  return daemon_command;
}

}  // namespace sailor
