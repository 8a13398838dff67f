// The process of the plugin, which is sbatch, salloc or srun: its command line, its standard input, and its
// parsed options.
//
// Options are read through helpers that these programs use and export (slurm_option_*). They are not part of
// Slurm's published interface, so they are looked up when needed: without them, planned submissions fail with
// a message, and plain ones are not affected.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/scheduler/continuation.h"

namespace sailor {

enum class SubmitProgram { sbatch, salloc, srun };
const char* to_string(SubmitProgram program);

// The words of this process's command line. Throws std::runtime_error.
std::vector<std::string> command_line();

struct ParsedCommand {
  // Position of the batch script, or of the command of salloc and srun, in the command line; nothing if there
  // is none: standard input, --wrap, or salloc's shell.
  std::optional<size_t> script_index;
  bool wrap = false;
  bool submits = true;  // false: --help, --version and the like, or a command line that will be rejected
  bool has_components = false;       // the user wrote `:`
  std::vector<GivenOption> options;  // in the order given
};
// Uses the program's own parser. Nothing when this Slurm does not export its option table.
std::optional<ParsedCommand> parse_command(const std::vector<std::string>& argv);

// A Slurm option by its long name, from the command line, an #SBATCH line or the environment; nothing if not
// given.
std::optional<std::string> option_value(const char* name);

// A batch script on standard input is read twice when the job is planned. Input that cannot be rewound (a
// pipe) is moved into memory and replaces descriptor 0, so that sbatch reads the same bytes. Does nothing
// when the script is a file or typed at a terminal, when sbatch will not read one, or in case of doubt.
void keep_script_on_stdin();

// Executes this program again with another command line; only returns by throwing std::runtime_error.
[[noreturn]] void run_again(const std::vector<std::string>& argv);

}  // namespace sailor
