// Finds the programs of this installation: next to the running one (a build tree), or in
// PREFIX/libexec/sailor.
#pragma once

#include <string>

namespace sailor {

// Absolute path of a program of this project, e.g. "sailor-rank". Throws std::runtime_error with the
// directories that were searched.
std::string program_path(const std::string& name);

}  // namespace sailor
