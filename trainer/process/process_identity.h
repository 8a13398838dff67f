// Identifies a process beyond its pid, which the system reuses.
#pragma once

#include <cstdint>

namespace sailor {

// Start time of this process in clock ticks since boot: field 22 of /proc/self/stat. 0 if it cannot be read.
int64_t process_start_ticks();

}  // namespace sailor
