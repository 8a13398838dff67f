// An event of a run as one line of text. Internal to planner/history. Pure.
#pragma once

#include <string>

#include "planner/history/json_lines.h"

namespace sailor {

std::string event_text(const Json& event);
// The event's `why`, a text or a list of texts, on one line.
std::string reasons_in(const Json& event);

}  // namespace sailor
