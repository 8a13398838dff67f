// A network profile as tables for people: per link the curve that the planner uses and every measurement
// behind it, with what the fitted line says of it; then the collectives. Pure.
#pragma once

#include <string>

#include "planner/profile/network_file.h"

namespace sailor {

// Ends in a newline; at most 110 columns but for long names.
std::string probe_report(const NetworkFile& network);

}  // namespace sailor
