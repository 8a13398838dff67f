// Where the programs of this installation lie: beside the running one (a build tree), or in
// PREFIX/libexec/sailor.
#pragma once

#include <string>

namespace sailor {

// Absolute path of a program of this project, e.g. "sailor-rank". Throws std::runtime_error naming the places
// that were tried.
std::string program_path(const std::string& name);

}  // namespace sailor
