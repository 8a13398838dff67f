// Starts programs and reports how they ended, without leaking descriptors or signal masks into them.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "planner/process/file_descriptor.h"

namespace sailor {

struct SpawnOptions {
  std::map<std::string, std::string> environment;  // added to this process's
  std::string output_file{};                       // stdout and stderr, appended; empty = inherited
  int stdout_descriptor = -1;                      // stdout alone, instead of output_file
  bool own_group = false;                          // in a process group of its own
};

// Starts `argv` (argv[0] is looked up in PATH) with default signal handling, nothing blocked, and /dev/null
// as stdin. Returns its process id; the caller reaps it. Throws std::runtime_error naming the program.
pid_t spawn(const std::vector<std::string>& argv, const SpawnOptions& options = {});

// Replaces this process by that program. Returns only by throwing std::runtime_error that names it.
[[noreturn]] void become_program(std::vector<std::string> argv);

// A file in memory for the output of a program, and its whole content. Throws std::runtime_error.
FileDescriptor memory_file(const char* name);
std::string read_all(int descriptor);

// Runs a program to its end, and calls `told` with its standard output, piece by piece as it comes. Returns
// the wait status. Throws std::runtime_error when it cannot be started; what `told` throws ends the program.
int run_with_output(const std::vector<std::string>& argv, const std::function<void(std::string_view)>& told);

// Runs a program to its end and returns its standard output. Throws std::runtime_error when it cannot be
// started or fails.
std::string run_and_read(const std::vector<std::string>& argv);

// "ended with exit code 3", "was killed by signal 9 (Killed)".
std::string describe_wait_status(int wait_status);
// As a shell has it: 128 and the signal for a process that was killed.
int exit_code_of(int wait_status);

// Makes this process the parent of every orphan among its descendants. Throws std::runtime_error.
void become_subreaper();
// Process ids of this process's children.
std::vector<pid_t> child_processes();
// Sends SIGTERM to all children, SIGKILL to those that still run after `grace_s`, and reaps them, including
// orphans that are reparented to this process meanwhile.
void end_all_children(double grace_s);

}  // namespace sailor
