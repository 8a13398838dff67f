// When a plan's nodes come free, and how that is known. Value types; pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace sailor {

enum class StartSource {
  free_now,   // the nodes are free
  scheduler,  // the scheduler says so: no later, unless other jobs are preferred
  limits      // by the time limits of running and waiting jobs
};

struct PlannedStart {
  double wait_s = 0;
  StartSource source = StartSource::free_now;
};

// A time in `seconds` from `now_s` (since 1970, local time): `14:10` today, `Tue 14:10` within six days, else
// with the date; without a clock `20 min`.
std::string time_text(double seconds, std::optional<int64_t> now_s);
// `now`, or the time, with `~` if it is not the scheduler's.
std::string start_text(const PlannedStart& start, std::optional<int64_t> now_s);

}  // namespace sailor
