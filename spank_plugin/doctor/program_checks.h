// Are the programs of a job there? On a compute node they must be; a login node without any of them is sound
// too: it plans and submits. Pure.
#pragma once

#include <string>
#include <vector>

#include "spank_plugin/doctor/finding.h"

namespace sailor {

struct ProgramState {
  std::string verb;     // of `sailor VERB`
  std::string path;     // empty when it is not installed
  bool starts = false;  // with all its libraries
};

// `compute_node`: jobs start here. `mpirun` is its path, empty when there is none.
Findings check_programs(const std::vector<ProgramState>& programs, const std::string& mpirun,
                        bool compute_node);

}  // namespace sailor
