// GPT-2's alphabet of bytes: a printable character for each of the 256 bytes, so that a vocabulary of bytes
// is one of text. Pure functions.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace sailor {

// The character of each byte: itself where it is printable in Latin-1, else from U+0100 on.
inline const std::array<char16_t, 256>& byte_characters() {
  static const std::array<char16_t, 256> characters = [] {
    std::array<char16_t, 256> result{};
    char16_t next = 0x100;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const bool printable = (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte != 0xad);
      result[byte] = printable ? static_cast<char16_t>(byte) : next++;
    }
    return result;
  }();
  return characters;
}

// Appends the characters of the bytes.
inline void append_bytes(std::u16string& text, std::string_view bytes) {
  for (const char byte : bytes) text += byte_characters()[static_cast<unsigned char>(byte)];
}

}  // namespace sailor
