// The layer profiles of the set `sailor`, from the reference data pack, completed where its README says that
// they are incomplete.
#pragma once

#include <map>
#include <string>

#include "planner/profile/profile_set.h"
#include "planner/simulator/assumptions.h"

namespace sailor::convert {

// By the name of the model.
std::map<std::string, ProfileSet> sailor_profiles(const std::string& reference,
                                                  const Assumptions& assumptions);

}  // namespace sailor::convert
