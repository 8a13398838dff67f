#include "trainer/data/tokenize/huggingface/decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "trainer/data/tokenize/huggingface/byte_alphabet.h"
#include "trainer/data/tokenize/huggingface/pattern.h"
#include "trainer/data/tokenize/huggingface/type_field.h"
#include "trainer/data/tokenize/huggingface/unicode.h"

namespace sailor {
namespace {

using TokenTexts = std::vector<std::string>;

void fuse(TokenTexts& tokens) {
  tokens = {std::accumulate(tokens.begin(), tokens.end(), std::string())};
}

void decode_bytes(TokenTexts& tokens) {
  std::string bytes;
  for (const std::string& token : tokens) {
    std::string part;
    for (const char16_t unit : to_utf16(token)) {
      const auto& characters = byte_characters();
      const auto found = std::find(characters.begin(), characters.end(), unit);
      if (found == characters.end()) {
        part = token;  // an added token
        break;
      }
      part += static_cast<char>(found - characters.begin());
    }
    bytes += part;
  }
  tokens = {to_utf8(to_utf16(bytes))};
}

// -1 unless the token is that of a byte: `<0x0A>`.
int byte_of(const std::string& token) {
  if (token.size() != 6 || !token.starts_with("<0x") || !token.ends_with('>')) return -1;
  const std::string digits = token.substr(3, 2);
  return digits.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos
             ? std::stoi(digits, nullptr, 16)
             : -1;
}

// Runs of byte tokens become text, or one U+FFFD per token if they are no UTF-8.
void decode_byte_tokens(TokenTexts& tokens) {
  TokenTexts result;
  std::string bytes;
  auto flush = [&] {
    if (bytes.empty()) return;
    const std::string text = to_utf8(to_utf16(bytes));
    if (text == bytes)
      result.push_back(text);
    else
      result.insert(result.end(), bytes.size(), "\uFFFD");
    bytes.clear();
  };
  for (const std::string& token : tokens) {
    if (const int byte = byte_of(token); byte >= 0) {
      bytes += static_cast<char>(byte);
      continue;
    }
    flush();
    result.push_back(token);
  }
  flush();
  tokens = std::move(result);
}

// Removes the character at most `start` times from the beginning of every token, and `stop` times from its
// end.
void strip_tokens(TokenTexts& tokens, const std::string& content, int start, int stop) {
  for (std::string& token : tokens) {
    for (int i = 0; i < start && token.starts_with(content); ++i) token.erase(0, content.size());
    for (int i = 0; i < stop && token.ends_with(content); ++i) token.resize(token.size() - content.size());
  }
}

void add_metaspace_decoder(const Field& field, Decoder& steps) {
  const MapField map(field,
                     {"type", "replacement", "add_prefix_space", "prepend_scheme", "split", "str_rep"});
  const std::string replacement = map.required("replacement").text();
  bool prefix = true;
  if (const auto scheme = map.optional("prepend_scheme"))
    prefix = scheme->choice({"first", "never", "always"}) != 1;
  if (const auto old = map.optional("add_prefix_space"); old && !old->boolean()) prefix = false;
  steps.push_back([replacement, prefix](TokenTexts& tokens) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      std::string text;
      std::string_view rest = tokens[i];
      while (!rest.empty()) {
        const bool space = rest.starts_with(replacement);
        if (!space)
          text += rest[0];
        else if (!(i == 0 && prefix))  // no space at all in the first token
          text += ' ';
        rest.remove_prefix(space ? replacement.size() : 1);
      }
      tokens[i] = text;
    }
  });
}

void add_decoders(const Field& field, Decoder& steps) {
  const Field type_field = type_of(field);
  const std::string type = type_field.text();
  if (type == "Sequence") {
    const MapField map(field, {"type", "decoders"});
    for (const Field& item : map.required("decoders").items()) add_decoders(item, steps);
  } else if (type == "ByteLevel") {
    const MapField map(field, {"type", "add_prefix_space", "trim_offsets", "use_regex"});
    steps.emplace_back(decode_bytes);
  } else if (type == "ByteFallback") {
    const MapField map(field, {"type"});
    steps.emplace_back(decode_byte_tokens);
  } else if (type == "Fuse") {
    const MapField map(field, {"type"});
    steps.emplace_back(fuse);
  } else if (type == "Strip") {
    const MapField map(field, {"type", "content", "start", "stop"});
    constexpr int kMost = 1 << 20;
    steps.push_back([content = map.required("content").text(),
                     start = map.required("start").integer<int>(0, kMost),
                     stop = map.required("stop").integer<int>(0, kMost)](TokenTexts& tokens) {
      strip_tokens(tokens, content, start, stop);
    });
  } else if (type == "Replace") {
    const MapField map(field, {"type", "pattern", "content"});
    steps.push_back([find = read_pattern(map.required("pattern")),
                     content = to_utf16(map.required("content").text_or_empty())](TokenTexts& tokens) {
      for (std::string& token : tokens) token = to_utf8(replace_matches(to_utf16(token), find, content));
    });
  } else if (type == "Metaspace") {
    add_metaspace_decoder(field, steps);
  } else {
    type_field.fail(
        fmt::format("\"{}\" is not supported (supported: ByteLevel, ByteFallback, Fuse, Strip, Replace, "
                    "Metaspace, Sequence)",
                    type));
  }
}

}  // namespace

Decoder read_decoder(const Field& field) {
  Decoder steps;
  add_decoders(field, steps);
  return steps;
}

}  // namespace sailor
