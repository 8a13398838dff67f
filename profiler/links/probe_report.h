// A network profile as tables: per link the curve for the planner and every measurement, with the value of
// the fitted line; then the collectives. Pure.
#pragma once

#include <string>

#include "planner/profile/network_file.h"

namespace sailor {

// Ends in a newline; at most 110 columns wide, except for long names.
std::string probe_report(const NetworkFile& network);

}  // namespace sailor
