// Host memory of a rank's process.
#pragma once

#include <cstdint>

namespace sailor {

// Lets this process keep the memory that it frees, because an iteration needs all of it again: otherwise
// large tensors are returned to the kernel when they are freed, and cost a page fault per 4 KiB when they are
// allocated again, which is a tenth of an iteration and most of its jitter. The peak does not change. Call it
// at the start of the process.
void keep_freed_memory();

// Host memory that this process may still allocate: what the machine has left, or what the limits of the
// process's cgroups leave, if that is less. 0 if unknown.
int64_t available_host_bytes();

// Peak resident memory of this process image. Throws std::runtime_error.
int64_t peak_resident_bytes();

}  // namespace sailor
