// Which directory a user means by a job id, a path, or nothing at all. Reads the file system.
#pragma once

#include <functional>
#include <string>

namespace sailor {

// Where a job was submitted; empty when nobody knows.
using SubmittedIn = std::function<std::string(const std::string& job)>;

// `run`: a run's directory, or a job id whose run is sailor-ID here or in the directory that `submitted_in`
// knows; empty: the run of `own_job` (may be empty), which is the job that we are in, else the newest one
// here. Throws InputError that names `command` where there is none.
std::string find_run(const std::string& run, const std::string& own_job, const std::string& command,
                     const SubmittedIn& submitted_in = nullptr);

}  // namespace sailor
