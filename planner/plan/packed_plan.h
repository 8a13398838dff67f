// A plan as one short printable text, to travel in environment variables: JSON, compressed with zlib, in
// base64 (RFC 4648, padded). Packing then unpacking gives the same plan. Pure.
#pragma once

#include <string>

#include "planner/plan/plan.h"

namespace sailor {

std::string pack_plan(const Plan& plan);
// Throws InputError naming `source` (where the text came from) when it is damaged: not base64, truncated, not
// a plan.
Plan unpack_plan(const std::string& packed, const std::string& source);

}  // namespace sailor
