// The batch script of a submission as text: whether it is a job spec, where it is, whether it already asks
// for components. Pure except for finding and reading files.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace sailor {

// A job spec is a script whose interpreter line runs `sailor run`: `#!/usr/bin/env -S sailor run`.
bool is_job_spec(const std::string& script);

// The job spec that a command runs: `./job.yaml`, `sailor run [OPTION...] job.yaml`; nothing if it does not
// run one. Reads the first line of the command's file.
std::optional<std::string> job_spec_of_command(const std::vector<std::string>& words);

// Throws InputError when the script has its own heterogeneous components (`#SBATCH hetjob`): the planner
// chooses them.
void refuse_components(const std::string& script, const std::string& name);

// The file that sbatch uses for this argument: relative to the working directory, else, for a plain name, on
// PATH. Absolute. Throws InputError if there is none.
std::string find_script(const std::string& argument);

// The content of a file descriptor from `offset` on, without moving its position. Throws std::runtime_error.
std::string read_descriptor(int descriptor, long offset);

}  // namespace sailor
