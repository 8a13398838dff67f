// A plan, or any text, as one short printable text, to travel in environment variables: compressed with zlib,
// in base64 (RFC 4648, padded). Packing then unpacking gives the same. Pure.
#pragma once

#include <string>

#include "planner/plan/plan.h"

namespace sailor {

std::string pack_text(const std::string& text);
// `what` it is, and its `source`, for errors: throws InputError when it is damaged.
std::string unpack_text(const std::string& packed, const std::string& what, const std::string& source);

std::string pack_plan(const Plan& plan);
// Throws InputError naming `source` (where the text came from) when it is damaged: not base64, truncated, not
// a plan.
Plan unpack_plan(const std::string& packed, const std::string& source);

}  // namespace sailor
