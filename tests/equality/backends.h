// Runs the ranks of a case: as threads of this process, or as processes started by mpirun.
#pragma once

#include "tests/equality/compare.h"

namespace sailor::equality {

// With `gpus` every rank has its own GPU. Throws std::runtime_error if there are too few.
Outcome run_on_threads(const Case& c, const std::vector<ReferenceStep>& reference, bool gpus = false);
// Trains the same without a reference, and returns which steps were skipped. Throws std::runtime_error if
// ranks disagree.
std::vector<bool> skipped_on_threads(const Case& c, bool gpus = false);

// Starts this program under mpirun; each process calls run_as_mpi_rank().
Outcome run_on_mpi(const CaseOptions& options, const Case& c, const std::vector<ReferenceStep>& reference);
// Bootstraps over MPI, trains over the socket plane, writes the outcome to `directory`. Returns the exit
// code.
int run_as_mpi_rank(const CaseOptions& options, const std::string& directory);

}  // namespace sailor::equality
