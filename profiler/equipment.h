// What this machine measures with: the processor that ranks compute on, and the libraries.
#pragma once

#include "planner/profile/measured_with.h"

namespace sailor {

// As of now, with `ranks` at work at once.
MeasuredWith this_equipment(int ranks);

}  // namespace sailor
