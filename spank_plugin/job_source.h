// The job spec of a planned submission: from --sailor-job, the batch script, or the command that salloc runs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/inputs/submit_options.h"
#include "planner/spec/job_spec.h"
#include "spank_plugin/slurm/submit_process.h"

namespace sailor {

struct Submission {
  std::vector<std::string> argv;
  std::optional<size_t> script_index;  // of the script or command
  std::vector<GivenOption> options;
  std::string job_path;  // absolute; empty when the spec is on standard input
  JobSpec job;
};

// Reads the job spec of this process's submission; a script on standard input begins at stdin_offset,
// which is negative when it cannot be read again. `spec_path` is the path of the spec of which the script is
// a copy; empty if it is none. Throws InputError; std::runtime_error when this build of Slurm does not export
// what was parsed.
Submission read_submission(SubmitProgram program, const SubmitOptions& options, long stdin_offset,
                           const std::string& spec_path);

}  // namespace sailor
