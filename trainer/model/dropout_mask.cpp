#include "trainer/model/dropout_mask.h"

namespace sailor {
namespace {

struct Block {
  uint32_t a, b, c, d;
};

Block round_of(const Block& x, uint32_t key0, uint32_t key1) {
  const uint64_t first = uint64_t{0xd2511f53} * x.a, second = uint64_t{0xcd9e8d57} * x.c;
  return {static_cast<uint32_t>(second >> 32) ^ x.b ^ key0, static_cast<uint32_t>(second),
          static_cast<uint32_t>(first >> 32) ^ x.d ^ key1, static_cast<uint32_t>(first)};
}

Block ten_rounds(Block x, uint32_t key0, uint32_t key1) {
  for (int i = 0; i < 10; ++i) {
    x = round_of(x, key0, key1);
    key0 += 0x9e3779b9;
    key1 += 0xbb67ae85;
  }
  return x;
}

}  // namespace

std::array<uint32_t, 4> philox4x32(const std::array<uint32_t, 4>& counter,
                                   const std::array<uint32_t, 2>& key) {
  const Block x = ten_rounds({counter[0], counter[1], counter[2], counter[3]}, key[0], key[1]);
  return {x.a, x.b, x.c, x.d};
}

void dropout_numbers(const DropoutPlace& place, int64_t first_block, int64_t blocks, uint32_t* numbers) {
  const auto key0 = static_cast<uint32_t>(place.seed), key1 = static_cast<uint32_t>(place.seed >> 32);
  const auto sequence = static_cast<uint32_t>(place.sequence), step = static_cast<uint32_t>(place.step);
  const auto tag = static_cast<uint32_t>(4 * place.layer + place.site);
  for (int64_t block = first_block; block < first_block + blocks; ++block) {
    const auto high = static_cast<uint32_t>(block >> 32);
    const Block x = ten_rounds({static_cast<uint32_t>(block), sequence, step, high << 16 | tag}, key0, key1);
    *numbers++ = x.a;
    *numbers++ = x.b;
    *numbers++ = x.c;
    *numbers++ = x.d;
  }
}

uint32_t dropout_threshold(double rate) {
  return static_cast<uint32_t>(rate * 4294967296.0);
}

}  // namespace sailor
