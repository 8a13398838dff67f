// The memory of a rank's process in the host.
#pragma once

#include <cstdint>

namespace sailor {

// Lets this process keep the memory that it frees, because an iteration needs all of it again: otherwise
// large tensors go back to the kernel as soon as they are freed, and cost a page fault per 4 KiB when they
// come back, which is a tenth of an iteration and most of its jitter. The peak does not change. Call at the
// start of the process.
void keep_freed_memory();

// Host memory that this process may still take: what the machine has left, or what the limits of the
// process's control groups leave, if that is less. 0 when it cannot be told.
int64_t available_host_bytes();

// Most memory that was resident at once in the life of this process image. Throws std::runtime_error.
int64_t peak_resident_bytes();

}  // namespace sailor
