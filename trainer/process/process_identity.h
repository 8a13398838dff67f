// Who a process is, beyond its number, which is used again.
#pragma once

#include <cstdint>

namespace sailor {

// When this process was started, in clock ticks since the machine was: field 22 of /proc/self/stat. 0 when it
// cannot be read.
int64_t process_start_ticks();

}  // namespace sailor
