// A cache of host memory for tensors: a freed block is kept for the next tensor of its size.
//
// An iteration allocates the same sizes again and again. The C library's heap fragments, which adds two
// thirds to the activations, and returns large blocks to the kernel, so that every 4 KiB cost a page fault
// the next time. With a free list per size, the memory of a rank is the maximum that its tensors need, and
// does not change between iterations. Where sizes differ from one iteration to
// the next (attention in documents), it is at most twice the maximum in use.
#pragma once

#include <cstdint>

namespace sailor {

// From now on tensors of this process get their memory from the cache. Call it before the first tensor; a
// second call does nothing. Thread-safe afterwards.
void use_tensor_cache();
// Returns unused blocks to the kernel: call it when the sizes of later tensors change.
void release_cached_tensors();
// Memory of the cache, used or not.
int64_t tensor_cache_bytes();

}  // namespace sailor
