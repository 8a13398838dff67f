// The sbatch process that the plugin runs in: its command line, its standard input, and its parsed options.
//
// Options are read through helpers that sbatch itself is built on and exports (slurm_option_*). They are not
// part of Slurm's published interface, so they are looked up when needed: where they are missing, planned
// submissions say so and plain ones never notice.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace sailor {

// The words of this process's command line. Throws std::runtime_error.
std::vector<std::string> command_line();

struct ParsedCommand {
  std::optional<size_t> script_index;  // in the command line; nothing = standard input or --wrap
  bool wrap = false;
  bool submits = true;  // false: --help, --version and their like, or a command line that sbatch will refuse
  bool has_components = false;  // the user wrote `:`
};
// Where sbatch's own parser finds the script. Nothing when this Slurm does not export its option table.
std::optional<ParsedCommand> parse_command(const std::vector<std::string>& argv);

// An sbatch option by its long name, from the command line, an #SBATCH line or the environment.
bool option_is_set(const char* name);
std::string option_value(const char* name);  // empty when not set

// A script on standard input is read twice when the job is planned. Input that cannot be rewound (a pipe) is
// moved into memory and put back as descriptor 0, so that sbatch reads the same bytes. Does nothing when the
// script is a file or typed at a terminal, when sbatch will not read one, or on any doubt.
void keep_script_on_stdin();

// Runs this very program again with another command line; returns only by throwing std::runtime_error.
[[noreturn]] void run_again(const std::vector<std::string>& argv);

}  // namespace sailor
