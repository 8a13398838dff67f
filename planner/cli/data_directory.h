// Finds the data files that are installed with the program.
#pragma once

#include <string>

namespace sailor::cli {

// The directory with the catalog, platforms and framework descriptions: $SAILOR_ASSUMPTIONS, else
// share/sailor next to the directory of the running program, both in an installation and in a build tree.
std::string assumptions_directory();

}  // namespace sailor::cli
