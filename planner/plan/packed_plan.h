// A plan, or any text, as one short printable string for environment variables: compressed with zlib, in
// base64 (RFC 4648, padded). Packing then unpacking gives the same. Pure.
#pragma once

#include <string>

#include "planner/plan/plan.h"

namespace sailor {

std::string pack_text(const std::string& text);
// Throws InputError if the text is damaged; `what` and `source` describe it in errors.
std::string unpack_text(const std::string& packed, const std::string& what, const std::string& source);

std::string pack_plan(const Plan& plan);
// Throws InputError naming `source` (the origin of the text) if it is damaged: not base64, truncated, not a
// plan.
Plan unpack_plan(const std::string& packed, const std::string& source);

}  // namespace sailor
