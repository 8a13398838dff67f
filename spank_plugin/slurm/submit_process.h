// The process that the plugin runs in, which is sbatch, salloc or srun: its command line, its standard input,
// and its parsed options.
//
// Options are read through helpers that these programs are built on and export (slurm_option_*). They are not
// part of Slurm's published interface, so they are looked up when needed: where they are missing, planned
// submissions say so and plain ones never notice.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace sailor {

enum class SubmitProgram { sbatch, salloc, srun };
SubmitProgram submit_program();
const char* to_string(SubmitProgram program);

// The words of this process's command line. Throws std::runtime_error.
std::vector<std::string> command_line();

struct ParsedCommand {
  // Where the batch script, or the command of salloc and srun, stands in the command line; nothing = there is
  // none: standard input, --wrap, or salloc's shell.
  std::optional<size_t> script_index;
  bool wrap = false;
  bool submits = true;  // false: --help, --version and their like, or a command line that will be refused
  bool has_components = false;  // the user wrote `:`
};
// Where the program's own parser finds the script. Nothing when this Slurm does not export its option table.
std::optional<ParsedCommand> parse_command(const std::vector<std::string>& argv);

// An option of Slurm's own by its long name, from the command line, an #SBATCH line or the environment;
// nothing when it was not given.
std::optional<std::string> option_value(const char* name);

// A batch script on standard input is read twice when the job is planned. Input that cannot be rewound (a
// pipe) is moved into memory and put back as descriptor 0, so that sbatch reads the same bytes. Does nothing
// when the script is a file or typed at a terminal, when sbatch will not read one, or on any doubt.
void keep_script_on_stdin();

// Runs this very program again with another command line; returns only by throwing std::runtime_error.
[[noreturn]] void run_again(const std::vector<std::string>& argv);

}  // namespace sailor
