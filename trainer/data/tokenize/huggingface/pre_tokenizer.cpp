#include "trainer/data/tokenize/huggingface/pre_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "trainer/data/tokenize/huggingface/byte_alphabet.h"
#include "trainer/data/tokenize/huggingface/split.h"
#include "trainer/data/tokenize/huggingface/type_field.h"
#include "trainer/data/tokenize/huggingface/unicode.h"

namespace sailor {
namespace {

using SplitStep = PreTokenizer::value_type;

constexpr const char* kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// `change(piece, first, result)` appends what becomes of a piece.
template <class Change>
SplitStep each_piece(Change change) {
  return [change](Segment& segment) {
    Segment result;
    result.at_start = segment.at_start;
    std::size_t begin = 0;
    for (const std::size_t end : segment.ends) {
      change(std::u16string_view(segment.text).substr(begin, end - begin), segment.at_start && begin == 0,
             result.text);
      result.ends.push_back(result.text.size());
      begin = end;
    }
    segment = std::move(result);
  };
}

SplitStep split_step(FindMatches find, SplitBehavior behavior, bool inverted = false) {
  return [find = std::move(find), behavior, inverted](Segment& segment) {
    split(segment, find, behavior, inverted);
  };
}

void add_byte_level(const Field& field, PreTokenizer& steps) {
  const MapField map(field, {"type", "add_prefix_space", "trim_offsets", "use_regex"});
  if (map.required("add_prefix_space").boolean())
    steps.push_back(each_piece([](std::u16string_view piece, bool, std::u16string& result) {
      if (!piece.starts_with(u' ')) result += u' ';
      result += piece;
    }));
  const std::optional<Field> use_regex = map.optional("use_regex");
  if (!use_regex || use_regex->boolean())
    steps.push_back(split_step(regular_expression(kGpt2, field), SplitBehavior::isolated));
  steps.push_back(each_piece(
      [](std::u16string_view piece, bool, std::u16string& result) { append_bytes(result, to_utf8(piece)); }));
}

void add_metaspace(const Field& field, PreTokenizer& steps) {
  const MapField map(field,
                     {"type", "replacement", "add_prefix_space", "prepend_scheme", "split", "str_rep"});
  const Field character = map.required("replacement");
  const std::u16string replacement = to_utf16(character.text());
  if (replacement.size() != 1) character.fail_type("one character");
  enum class Scheme { first, never, always } scheme = Scheme::always;
  if (const auto name = map.optional("prepend_scheme"))
    scheme = static_cast<Scheme>(name->choice({"first", "never", "always"}));
  if (const auto prefix = map.optional("add_prefix_space"); prefix && !prefix->boolean()) {
    if (map.optional("prepend_scheme") && scheme != Scheme::never) prefix->fail("contradicts prepend_scheme");
    scheme = Scheme::never;
  }
  steps.push_back(each_piece(
      [space = replacement[0], scheme](std::u16string_view piece, bool first, std::u16string& result) {
        const bool begins_with_space = piece[0] == u' ' || piece[0] == space;
        if (!begins_with_space && (scheme == Scheme::always || (scheme == Scheme::first && first)))
          result += space;
        for (const char16_t unit : piece) result += unit == u' ' ? space : unit;
      }));
  const std::optional<Field> splits = map.optional("split");
  if (!splits || splits->boolean())
    steps.push_back(split_step(characters([space = replacement[0]](char32_t c) { return c == space; }),
                               SplitBehavior::merged_with_next));
}

// Runs of word characters, and runs of others; white space is dropped.
SplitStep whitespace() {
  const FindMatches runs = [](const std::u16string& text, std::size_t begin, std::size_t end,
                              std::vector<Span>& found) {
    const std::u16string_view part = std::u16string_view(text).substr(0, end);
    int previous = 0;
    for (std::size_t at = begin; at < end;) {
      const std::size_t first = at;
      const char32_t c = next_code_point(part, at);
      const int kind = is_word(c) ? 1 : is_space(c) ? 0 : 2;
      if (kind != 0 && kind == previous)
        found.back().end = at;
      else if (kind != 0)
        found.push_back({first, at});
      previous = kind;
    }
  };
  return split_step(runs, SplitBehavior::removed, true);
}

bool is_ascii_or_unicode_punctuation(char32_t c) {
  return (c > 0x20 && c < 0x30) || (c >= 0x3a && c <= 0x40) || (c >= 0x5b && c <= 0x60) ||
         (c >= 0x7b && c <= 0x7e) || is_punctuation(c);
}

void add_split(const Field& field, PreTokenizer& steps) {
  const MapField map(field, {"type", "pattern", "behavior", "invert"});
  const std::optional<Field> invert = map.optional("invert");
  steps.push_back(split_step(read_pattern(map.required("pattern")),
                             read_split_behavior(map.required("behavior")), invert && invert->boolean()));
}

void add_delimiter(const Field& field, PreTokenizer& steps) {
  const MapField map(field, {"type", "delimiter"});
  const std::u16string text = to_utf16(map.required("delimiter").text());
  std::size_t at = 0;
  const char32_t delimiter = next_code_point(text, at);
  if (at != text.size()) map.required("delimiter").fail_type("one character");
  steps.push_back(
      split_step(characters([delimiter](char32_t c) { return c == delimiter; }), SplitBehavior::removed));
}

void add_pre_tokenizers(const Field& field, PreTokenizer& steps) {
  const Field type_field = type_of(field);
  const std::string type = type_field.text();
  if (type == "Sequence") {
    const MapField map(field, {"type", "pretokenizers"});
    for (const Field& item : map.required("pretokenizers").items()) add_pre_tokenizers(item, steps);
  } else if (type == "Split") {
    add_split(field, steps);
  } else if (type == "ByteLevel") {
    add_byte_level(field, steps);
  } else if (type == "Metaspace") {
    add_metaspace(field, steps);
  } else if (type == "Whitespace") {
    const MapField map(field, {"type"});
    steps.push_back(whitespace());
  } else if (type == "WhitespaceSplit") {
    const MapField map(field, {"type"});
    steps.push_back(split_step(characters(is_space), SplitBehavior::removed));
  } else if (type == "Punctuation") {
    const MapField map(field, {"type", "behavior"});
    const std::optional<Field> behavior = map.optional("behavior");
    steps.push_back(split_step(characters(is_ascii_or_unicode_punctuation),
                               behavior ? read_split_behavior(*behavior) : SplitBehavior::isolated));
  } else if (type == "Digits") {
    const MapField map(field, {"type", "individual_digits"});
    steps.push_back(split_step(characters(is_number), map.required("individual_digits").boolean()
                                                          ? SplitBehavior::isolated
                                                          : SplitBehavior::contiguous));
  } else if (type == "CharDelimiterSplit") {
    add_delimiter(field, steps);
  } else {
    type_field.fail(
        fmt::format("\"{}\" is not supported (supported: ByteLevel, Split, Metaspace, Whitespace, "
                    "WhitespaceSplit, Punctuation, Digits, CharDelimiterSplit, Sequence)",
                    type));
  }
}

}  // namespace

PreTokenizer read_pre_tokenizer(const Field& field) {
  PreTokenizer steps;
  add_pre_tokenizers(field, steps);
  return steps;
}

}  // namespace sailor
