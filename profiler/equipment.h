// The equipment of measurements on this machine: processor and libraries.
#pragma once

#include "planner/profile/measured_with.h"

namespace sailor {

// Current equipment, with `ranks` concurrent ranks.
MeasuredWith this_equipment(int ranks);

}  // namespace sailor
