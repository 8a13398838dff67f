#include "trainer/data/token_element.h"

#include <array>
#include <cstring>
#include <utility>

namespace sailor {
namespace {

template <class T>
void copy_as(const unsigned char* from, int64_t count, int64_t* out) {
  for (int64_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, from + static_cast<std::size_t>(i) * sizeof value, sizeof value);
    out[i] = static_cast<int64_t>(value);
  }
}

}  // namespace

std::size_t bytes_of(TokenElement element) {
  switch (element) {
    case TokenElement::u8:
    case TokenElement::i8:
      return 1;
    case TokenElement::u16:
    case TokenElement::i16:
      return 2;
    case TokenElement::u32:
    case TokenElement::i32:
      return 4;
    case TokenElement::u64:
    case TokenElement::i64:
      return 8;
  }
  return 1;
}

std::optional<TokenElement> token_element(std::string_view name) {
  using enum TokenElement;
  static constexpr std::array<std::pair<std::string_view, TokenElement>, 8> kNames = {{{"uint8", u8},
                                                                                       {"int8", i8},
                                                                                       {"uint16", u16},
                                                                                       {"int16", i16},
                                                                                       {"uint32", u32},
                                                                                       {"int32", i32},
                                                                                       {"uint64", u64},
                                                                                       {"int64", i64}}};
  for (const auto& [known, element] : kNames) {
    if (known == name) return element;
  }
  return std::nullopt;
}

void copy_tokens(TokenElement element, const unsigned char* from, int64_t count, int64_t* out) {
  switch (element) {
    case TokenElement::u8:
      return copy_as<uint8_t>(from, count, out);
    case TokenElement::i8:
      return copy_as<int8_t>(from, count, out);
    case TokenElement::u16:
      return copy_as<uint16_t>(from, count, out);
    case TokenElement::i16:
      return copy_as<int16_t>(from, count, out);
    case TokenElement::u32:
      return copy_as<uint32_t>(from, count, out);
    case TokenElement::i32:
      return copy_as<int32_t>(from, count, out);
    case TokenElement::u64:
      return copy_as<uint64_t>(from, count, out);
    case TokenElement::i64:
      return copy_as<int64_t>(from, count, out);
  }
}

}  // namespace sailor
