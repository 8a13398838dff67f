#include "trainer/data/tokenize/huggingface/charsmap.h"

#include <unicode/brkiter.h>

#include <cstring>
#include <memory>
#include <stdexcept>

#include "trainer/data/tokenize/huggingface/unicode.h"

namespace sailor {
namespace {

std::string from_base64(const std::string& text, const Field& field) {
  static const std::string kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  uint32_t bits = 0;
  int have = 0;
  for (const char c : text.substr(0, text.find('='))) {
    const std::size_t digit = kDigits.find(c);
    if (digit == std::string::npos) field.fail("is no base64");
    bits = bits << 6 | static_cast<uint32_t>(digit);
    have += 6;
    if (have < 8) continue;
    have -= 8;
    bytes += static_cast<char>(bits >> have & 0xff);
  }
  return bytes;
}

// A unit of the trie (Darts-clone).
bool has_leaf(uint32_t unit) {
  return (unit >> 8 & 1) != 0;
}
uint32_t label(uint32_t unit) {
  return unit & (uint32_t{1} << 31 | 0xff);
}
uint32_t offset(uint32_t unit) {
  return unit >> 10 << ((unit & uint32_t{1} << 9) >> 6);
}

}  // namespace

Charsmap::Charsmap(const Field& field) {
  const std::string bytes = from_base64(field.text(), field);
  uint32_t trie_bytes = 0;
  if (bytes.size() >= sizeof trie_bytes) std::memcpy(&trie_bytes, bytes.data(), sizeof trie_bytes);
  if (trie_bytes == 0 || trie_bytes % 4 != 0 || trie_bytes > bytes.size() - sizeof trie_bytes)
    field.fail("is no precompiled charsmap of SentencePiece, or truncated");
  units_.resize(trie_bytes / 4);
  std::memcpy(units_.data(), bytes.data() + sizeof trie_bytes, trie_bytes);
  replacements_ = bytes.substr(sizeof trie_bytes + trie_bytes) + '\0';
}

const char* Charsmap::find(std::string_view utf8) const {
  // Positions beyond the array occur only in damaged tries.
  auto unit_at = [this](uint32_t position) { return position < units_.size() ? units_[position] : 0; };
  uint32_t position = offset(units_[0]);
  for (const char c : utf8) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte == 0) return nullptr;
    position ^= byte;
    const uint32_t unit = unit_at(position);
    if (label(unit) != byte) return nullptr;
    position ^= offset(unit);
    if (!has_leaf(unit)) continue;
    const uint32_t at = unit_at(position) & ~(uint32_t{1} << 31);
    return at < replacements_.size() ? replacements_.data() + at : nullptr;
  }
  return nullptr;
}

std::u16string Charsmap::apply(const std::u16string& text) const {
  UErrorCode status = U_ZERO_ERROR;
  const std::unique_ptr<icu::BreakIterator> clusters(
      icu::BreakIterator::createCharacterInstance(icu::Locale::getRoot(), status));
  if (U_FAILURE(status))
    throw std::runtime_error(std::string("ICU: grapheme clusters: ") + u_errorName(status));
  clusters->setText(icu::UnicodeString(false, text.data(), static_cast<int32_t>(text.size())));
  constexpr std::size_t kLongestClusterBytes = 5;
  std::u16string result;
  const std::u16string_view all = text;
  for (int32_t begin = clusters->first(), end = clusters->next(); end != icu::BreakIterator::DONE;
       begin = end, end = clusters->next()) {
    const std::u16string_view cluster =
        all.substr(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
    if (const std::string utf8 = to_utf8(cluster); utf8.size() <= kLongestClusterBytes) {
      if (const char* replacement = find(utf8)) {
        result += to_utf16(replacement);
        continue;
      }
    }
    for (std::size_t at = 0; at < cluster.size();) {
      const std::size_t first = at;
      next_code_point(cluster, at);
      const std::u16string_view character = cluster.substr(first, at - first);
      const char* replacement = find(to_utf8(character));
      result += replacement ? to_utf16(replacement) : std::u16string(character);
    }
  }
  return result;
}

}  // namespace sailor
