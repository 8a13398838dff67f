// Where the data that are installed with the program are.
#pragma once

#include <string>

namespace sailor::cli {

// The directory with the catalog, platforms and framework descriptions: $SAILOR_ASSUMPTIONS, else
// share/sailor beside the directory that the running program is in, in an installation as in a build tree.
std::string assumptions_directory();

}  // namespace sailor::cli
