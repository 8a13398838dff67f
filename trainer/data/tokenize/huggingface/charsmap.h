// The replacements of characters of a SentencePiece model (`precompiled_charsmap`), as its rules nmt_nfkc and
// others are stored: a double-array trie from UTF-8 to replacements. Immutable; thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "planner/spec/field.h"

namespace sailor {

class Charsmap {
 public:
  // `field` has it in base64. Throws InputError naming the key.
  explicit Charsmap(const Field& field);

  // Replaces the grapheme clusters, else the characters, that have a replacement.
  std::u16string apply(const std::u16string& text) const;

 private:
  // Replacement of the shortest prefix of `utf8` that has one, else nullptr.
  const char* find(std::string_view utf8) const;

  std::vector<uint32_t> units_;
  std::string replacements_;  // each ends in NUL
};

}  // namespace sailor
