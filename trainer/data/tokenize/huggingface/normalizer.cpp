#include "trainer/data/tokenize/huggingface/normalizer.h"

#include <fmt/format.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/uniset.h>

#include <memory>
#include <stdexcept>
#include <utility>

#include "trainer/data/tokenize/huggingface/byte_alphabet.h"
#include "trainer/data/tokenize/huggingface/charsmap.h"
#include "trainer/data/tokenize/huggingface/pattern.h"
#include "trainer/data/tokenize/huggingface/type_field.h"
#include "trainer/data/tokenize/huggingface/unicode.h"

namespace sailor {
namespace {

using NormalizerStep = Normalizer::value_type;

void require(UErrorCode status) {
  if (U_FAILURE(status)) throw std::runtime_error(std::string("ICU: normalization: ") + u_errorName(status));
}

// A normalization form as of Unicode 9, which the tokenizers library has tables of: characters that are newer
// remain as they are.
NormalizerStep unicode_form(const icu::Normalizer2* (*instance)(UErrorCode&)) {
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* form = instance(status);
  require(status);
  auto known = std::make_shared<icu::UnicodeSet>(icu::UnicodeString("[:age=9.0:]"), status);
  require(status);
  known->freeze();
  return [form, known](Segment& segment) {
    UErrorCode failed = U_ZERO_ERROR;
    const icu::UnicodeString text(false, segment.text.data(), static_cast<int32_t>(segment.text.size()));
    const icu::FilteredNormalizer2 filtered(*form, *known);
    const icu::UnicodeString result = static_cast<const icu::Normalizer2&>(filtered).normalize(text, failed);
    require(failed);
    segment.text.assign(result.getBuffer(), static_cast<std::size_t>(result.length()));
  };
}

// `change(text, c)` appends what becomes of a character.
template <class Change>
NormalizerStep each_character(Change change) {
  return [change](Segment& segment) {
    std::u16string result;
    result.reserve(segment.text.size());
    for (std::size_t at = 0; at < segment.text.size();) change(result, next_code_point(segment.text, at));
    segment.text = std::move(result);
  };
}

// Character by character, without the context that decides about the final sigma.
void append_lower(std::u16string& text, char32_t c) {
  constexpr char32_t kCapitalIWithDot = 0x130;  // the only one that becomes two characters
  if (c == kCapitalIWithDot)
    text += u"i\u0307";
  else
    append_code_point(text, static_cast<char32_t>(u_tolower(static_cast<UChar32>(c))));
}

// SentencePiece's rules of `nmt`: control characters vanish, other spaces become U+0020.
void append_nmt(std::u16string& text, char32_t c) {
  const bool control = (c >= 0x01 && c <= 0x08) || c == 0x0b || (c >= 0x0e && c <= 0x1f) || c == 0x7f ||
                       c == 0x8f || c == 0x9f;
  const bool space = c == 0x09 || c == 0x0a || c == 0x0c || c == 0x0d || c == 0x1680 ||
                     (c >= 0x200b && c <= 0x200f) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
                     c == 0xfeff || c == 0xfffd;
  if (!control) append_code_point(text, space ? U' ' : c);
}

NormalizerStep strip(bool left, bool right) {
  return [left, right](Segment& segment) {
    std::size_t begin = 0, end = segment.text.size();  // white space is in the basic plane
    while (left && begin < end && is_space(segment.text[begin])) ++begin;
    while (right && end > begin && is_space(segment.text[end - 1])) --end;
    if (begin > 0) segment.at_start = false;
    segment.text = segment.text.substr(begin, end - begin);
  };
}

NormalizerStep replace(const MapField& map) {
  return [find = read_pattern(map.required("pattern")),
          content = to_utf16(map.required("content").text_or_empty())](Segment& segment) {
    segment.text = replace_matches(segment.text, find, content);
  };
}

void add_normalizers(const Field& field, Normalizer& steps);

// Steps without options.
std::optional<NormalizerStep> plain_step(const std::string& type) {
  if (type == "NFC") return unicode_form(icu::Normalizer2::getNFCInstance);
  if (type == "NFD") return unicode_form(icu::Normalizer2::getNFDInstance);
  if (type == "NFKC") return unicode_form(icu::Normalizer2::getNFKCInstance);
  if (type == "NFKD") return unicode_form(icu::Normalizer2::getNFKDInstance);
  if (type == "Lowercase") return each_character(append_lower);
  if (type == "Nmt") return each_character(append_nmt);
  if (type == "ByteLevel")
    return [](Segment& segment) {
      std::u16string result;
      append_bytes(result, to_utf8(segment.text));
      segment.text = std::move(result);
    };
  return {};
}

void add_normalizers(const Field& field, Normalizer& steps) {
  const Field type_field = type_of(field);
  const std::string type = type_field.text();
  if (std::optional<NormalizerStep> step = plain_step(type)) {
    const MapField map(field, {"type"});
    steps.push_back(std::move(*step));
  } else if (type == "Sequence") {
    const MapField map(field, {"type", "normalizers"});
    for (const Field& item : map.required("normalizers").items()) add_normalizers(item, steps);
  } else if (type == "Replace") {
    steps.push_back(replace(MapField(field, {"type", "pattern", "content"})));
  } else if (type == "Prepend") {
    const MapField map(field, {"type", "prepend"});
    steps.push_back([prefix = to_utf16(map.required("prepend").text_or_empty())](Segment& segment) {
      if (!segment.text.empty()) segment.text.insert(0, prefix);
    });
  } else if (type == "Strip") {
    const MapField map(field, {"type", "strip_left", "strip_right"});
    steps.push_back(strip(map.required("strip_left").boolean(), map.required("strip_right").boolean()));
  } else if (type == "Precompiled") {
    const MapField map(field, {"type", "precompiled_charsmap"});
    steps.push_back([charsmap = std::make_shared<Charsmap>(map.required("precompiled_charsmap"))](
                        Segment& segment) { segment.text = charsmap->apply(segment.text); });
  } else {
    type_field.fail(
        fmt::format("\"{}\" is not supported (supported: NFC, NFD, NFKC, NFKD, Lowercase, Nmt, "
                    "ByteLevel, Replace, Prepend, Strip, Precompiled, Sequence)",
                    type));
  }
}

}  // namespace

Normalizer read_normalizer(const Field& field) {
  Normalizer steps;
  add_normalizers(field, steps);
  return steps;
}

}  // namespace sailor
