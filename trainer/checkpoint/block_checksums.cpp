#include "trainer/checkpoint/block_checksums.h"

#include <algorithm>
#include <array>
#include <stdexcept>

namespace sailor {
namespace {

constexpr size_t kHashBytes = kChecksumDigits / 2;

void begin(crypto_generichash_state& state) {
  static const bool ready = sodium_init() >= 0;
  if (!ready) throw std::runtime_error("libsodium cannot be used on this machine");
  crypto_generichash_init(&state, nullptr, 0, kHashBytes);
}

std::string end(crypto_generichash_state& state) {
  std::array<unsigned char, kHashBytes> hash{};
  crypto_generichash_final(&state, hash.data(), hash.size());
  std::array<char, 2 * kHashBytes + 1> digits{};
  sodium_bin2hex(digits.data(), digits.size(), hash.data(), hash.size());
  return digits.data();
}

}  // namespace

std::string checksum_of(const void* data, int64_t bytes) {
  crypto_generichash_state state;
  begin(state);
  crypto_generichash_update(&state, static_cast<const unsigned char*>(data),
                            static_cast<unsigned long long>(bytes));
  return end(state);
}

BlockChecksums::BlockChecksums() {
  begin(state_);
}

void BlockChecksums::add(const void* data, int64_t bytes) {
  const auto* next = static_cast<const unsigned char*>(data);
  while (bytes > 0) {
    const int64_t part = std::min(bytes, kChecksumBlockBytes - in_block_);
    crypto_generichash_update(&state_, next, static_cast<unsigned long long>(part));
    next += part;
    bytes -= part;
    in_block_ += part;
    if (in_block_ == kChecksumBlockBytes) end_block();
  }
}

void BlockChecksums::end_block() {
  digits_ += end(state_);
  begin(state_);
  in_block_ = 0;
}

std::string BlockChecksums::finish() {
  if (in_block_ > 0) end_block();
  return digits_;
}

}  // namespace sailor
