// Reads profiles from a parsed document, so that files of a directory are parsed only once. Internal to
// planner/profile.
#pragma once

#include "planner/profile/layer_profile.h"
#include "planner/profile/network_file.h"
#include "planner/spec/document.h"
#include "planner/spec/field.h"

namespace sailor {

ProfileFile read_profile_file(const Document& document);
NetworkFile read_network_file(const Document& document);

}  // namespace sailor
