#include "spank_plugin/doctor/program_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace sailor {
namespace {

Finding program_finding(const ProgramState& program) {
  if (program.path.empty())
    return problem(
        "programs", fmt::format("sailor-{} is not installed", program.verb),
        "install the package sailor-trainer on this node, or Sailor on a file system that it shares");
  return problem("programs", program.path + " does not start",
                 "run it by hand: a library may be missing (ldd " + program.path + ")");
}

}  // namespace

Findings check_programs(const std::vector<ProgramState>& programs, const std::string& mpirun,
                        bool compute_node) {
  const bool none = std::all_of(programs.begin(), programs.end(),
                                [](const ProgramState& program) { return program.path.empty(); });
  if (none && !compute_node)
    return {note("programs", "the trainer is not installed here; a login node does not need it",
                 "`sailor doctor --nodes` checks compute nodes, which need it (package sailor-trainer)")};
  Findings findings;
  for (const ProgramState& program : programs)
    if (!program.starts) findings.push_back(program_finding(program));
  if (findings.empty() && !programs.empty())
    findings.push_back(
        well("programs", std::filesystem::path(programs.front().path).parent_path().string() + "/sailor-*"));
  if (mpirun.empty())
    findings.push_back(problem("mpi", "mpirun was not found", "install Open MPI, or set SAILOR_MPIRUN"));
  else
    findings.push_back(well("mpi", mpirun));
  return findings;
}

}  // namespace sailor
