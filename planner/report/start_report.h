// When a job could start, in words. Pure.
#pragma once

#include <string>
#include <vector>

#include "planner/spec/snapshot.h"
#include "planner/start/choose_start.h"

namespace sailor {

// `start now on 8 Y and queue for 32 X, end Mon 09:10; wait 20 min for 32 X, end Mon 09:30`: at most three
// options in their order, among them one that starts now if there is one. Requires at least one.
std::string starts_text(const std::vector<StartOption>& options, const Snapshot& snapshot);

}  // namespace sailor
