// The command line of a planned submission: the user's own command with the options of the plan's components,
// and the program's output about the job. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sailor {

// Inserts the components' options before the script or command (at `script_index` of argv; nothing = there is
// none, or it is on standard input or wrapped). The user's options keep their place: later ones win if both
// set the same. `repeated` are the user's options that Slurm does not pass from the first component to the
// others.
std::vector<std::string> planned_command(const std::vector<std::string>& argv,
                                         std::optional<size_t> script_index,
                                         const std::vector<std::vector<std::string>>& components,
                                         const std::vector<std::string>& extra,
                                         const std::vector<std::string>& repeated);

// The job of `Submitted batch job 12` or of --parsable's `12;cluster`; nothing for any other line.
std::optional<uint32_t> submitted_job(const std::string& line);

// One line that a shell parses back to the same words.
std::string shell_line(const std::vector<std::string>& words);

}  // namespace sailor
