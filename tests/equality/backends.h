// Runs the ranks of a case: as threads of this process, or as processes.
#pragma once

#include "tests/equality/compare.h"

namespace sailor::equality {

// With `gpus` every rank has its own GPU. Throws std::runtime_error if there are too few.
Outcome run_on_threads(const Case& c, const std::vector<ReferenceStep>& reference, bool gpus = false);
// Trains the same without a reference, and returns which steps were skipped. Throws std::runtime_error if
// ranks disagree.
std::vector<bool> skipped_on_threads(const Case& c, bool gpus = false);

// Starts this program for every rank, under `mpi` (mpirun) or without; each process calls run_as_rank().
Outcome run_in_processes(const CaseOptions& options, const Case& c,
                         const std::vector<ReferenceStep>& reference, bool mpi, bool gpus);
// Bootstraps, trains over the socket plane, or with `gpus` over NCCL, and writes the outcome to `directory`.
// Returns the exit code.
int run_as_rank(const CaseOptions& options, const std::string& directory, bool gpus);

}  // namespace sailor::equality
