// Memory of tensors in the host: what a tensor frees is kept for the next one of its size.
//
// An iteration allocates the same sizes again and again. The C library's heap serves them with holes that add
// two thirds to the activations, and gives large blocks back to the kernel, where every 4 KiB cost a page
// fault the next time. With a list of free blocks per size the memory of a rank is what its tensors need at
// the worst moment, and does not change from iteration to iteration.
#pragma once

#include <cstdint>

namespace sailor {

// From here on tensors of this process take their memory from the cache. Call before the first tensor; a
// second call does nothing. Thread-safe afterwards.
void use_tensor_cache();
// Gives the blocks that no tensor uses back to the kernel: for when what follows is unlike what was before.
void release_cached_tensors();
// Memory that the cache holds, used or not.
int64_t tensor_cache_bytes();

}  // namespace sailor
