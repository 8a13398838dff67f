// One line for people of an event of a run. Internal to planner/history. Pure.
#pragma once

#include <string>

#include "planner/history/json_lines.h"

namespace sailor {

std::string event_text(const Json& event);
// Its `why`, a text or a list of texts, in one line.
std::string reasons_in(const Json& event);

}  // namespace sailor
