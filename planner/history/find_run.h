// Finds the run directory for a job id, a path, or nothing. Reads the file system.
#pragma once

#include <functional>
#include <string>

namespace sailor {

// Directory that a job was submitted in; empty if unknown.
using SubmittedIn = std::function<std::string(const std::string& job)>;

// `run`: a run directory, or a job id whose run is sailor-ID here or in the directory from `submitted_in`;
// empty: the run of `own_job` (the job of this process, may be empty), else the newest one here. Throws
// InputError that names `command` if there is none.
std::string find_run(const std::string& run, const std::string& own_job, const std::string& command,
                     const SubmittedIn& submitted_in = nullptr);

}  // namespace sailor
