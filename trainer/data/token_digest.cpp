#include "trainer/data/token_digest.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace sailor {

uint32_t token_digest(const std::vector<int64_t>& tokens) {
  return static_cast<uint32_t>(XXH3_64bits(tokens.data(), tokens.size() * sizeof(int64_t)));
}

}  // namespace sailor
