// A layer profile for people: what it is good for, when and with what it was measured, every figure with its
// unit, the number of measurements behind it and how sure it is. Pure.
#pragma once

#include <string>

#include "planner/profile/layer_profile.h"

namespace sailor {

// Fixed columns, at most 110 columns wide, ends in a newline.
std::string profile_table(const ProfileFile& profile);

}  // namespace sailor
