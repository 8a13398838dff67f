// Checks that the programs of a job are installed. A compute node needs them; a login node does not: it plans
// and submits. Pure.
#pragma once

#include <string>
#include <vector>

#include "spank_plugin/doctor/finding.h"

namespace sailor {

struct ProgramState {
  std::string verb;     // of `sailor VERB`
  std::string path;     // empty if not installed
  bool starts = false;  // with all its libraries
};

// `compute_node`: jobs start here. `mpirun` is its path, empty if not found.
Findings check_programs(const std::vector<ProgramState>& programs, const std::string& mpirun,
                        bool compute_node);

}  // namespace sailor
