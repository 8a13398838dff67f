// The name of this process in `ps` and `top`.
#pragma once

#include <string>

namespace sailor {

// Replaces the command line by `title`, truncated to the length of the command line: the environment, which
// follows it in memory, stays readable for programs that identify processes by it. Replaces the short name of
// the program by `name`, at most 15 characters. If the address of the command line is unknown, only the short
// name changes.
void set_process_title(const std::string& title, const std::string& name);

}  // namespace sailor
