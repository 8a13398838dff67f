// A layer profile as a table: the model, when and with what it was measured, and every value with its unit,
// number of measurements and accuracy. Pure.
#pragma once

#include <string>

#include "planner/profile/layer_profile.h"

namespace sailor {

// Fixed columns, at most 110 columns wide, ends in a newline.
std::string profile_table(const ProfileFile& profile);

}  // namespace sailor
