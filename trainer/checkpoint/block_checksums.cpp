#include "trainer/checkpoint/block_checksums.h"

#include <fmt/format.h>

#include <algorithm>
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace sailor {
namespace {

std::string digits_of(const XXH128_hash_t& hash) {
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace

std::string checksum_of(const void* data, int64_t bytes) {
  return digits_of(XXH3_128bits(data, static_cast<std::size_t>(bytes)));
}

struct BlockChecksums::State {
  XXH3_state_t hash;
};

BlockChecksums::BlockChecksums() : state_(std::make_unique<State>()) {
  XXH3_128bits_reset(&state_->hash);
}
BlockChecksums::~BlockChecksums() = default;

void BlockChecksums::add(const void* data, int64_t bytes) {
  const auto* next = static_cast<const unsigned char*>(data);
  while (bytes > 0) {
    const int64_t part = std::min(bytes, kChecksumBlockBytes - in_block_);
    XXH3_128bits_update(&state_->hash, next, static_cast<std::size_t>(part));
    next += part;
    bytes -= part;
    in_block_ += part;
    if (in_block_ == kChecksumBlockBytes) end_block();
  }
}

void BlockChecksums::end_block() {
  digits_ += digits_of(XXH3_128bits_digest(&state_->hash));
  XXH3_128bits_reset(&state_->hash);
  in_block_ = 0;
}

std::string BlockChecksums::finish() {
  if (in_block_ > 0) end_block();
  return digits_;
}

}  // namespace sailor
