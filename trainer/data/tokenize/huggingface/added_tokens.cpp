#include "trainer/data/tokenize/huggingface/added_tokens.h"

#include <fmt/format.h>

#include <algorithm>

#include "trainer/data/tokenize/huggingface/unicode.h"

namespace sailor {
namespace {

bool ends_with_word(std::u16string_view text) {
  if (text.empty()) return false;
  std::size_t at = text.size() - 1;
  if (at > 0 && text[at] >= 0xdc00 && text[at] < 0xe000) --at;
  return is_word(next_code_point(text, at));
}
bool starts_with_word(std::u16string_view text) {
  std::size_t at = 0;
  return !text.empty() && is_word(next_code_point(text, at));
}

}  // namespace

AddedTokens::AddedTokens(const Field& field, const Vocabulary& vocabulary, const Normalizer& normalizer) {
  for (const Field& item : field.items()) read_token(item, vocabulary, normalizer);
}

void AddedTokens::read_token(const Field& field, const Vocabulary& vocabulary, const Normalizer& normalizer) {
  const MapField map(field, {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
  const std::u16string content = to_utf16(map.required("content").text());
  const Field id_field = map.required("id");
  const int id = id_field.integer<int>(0, Vocabulary::kMostTokens - 1);
  // The tokenizers library numbers them anew: by the vocabulary, else behind all others.
  const int known = std::max(find(content), vocabulary.find(content));
  const int library_id = known >= 0 ? known : std::max(end_, static_cast<int>(vocabulary.ids().size()));
  if (id != library_id)
    id_field.fail(fmt::format("is {}, but the tokenizers library gives \"{}\" the number {}", id,
                              to_utf8(content), library_id));
  auto flag = [&map](const char* key) { return map.required(key).boolean(); };
  const bool normalized = flag("normalized");
  Segment text{content, {content.size()}, true};
  if (normalized) normalize(normalizer, text);
  const auto index = static_cast<int>(tokens_.size());
  if (text.text.empty()) map.required("content").fail("nothing is left of it after the normalizer");
  (normalized ? normalized_ : plain_).add(text.text, index);
  by_id_[id] = tokens_.size();
  const bool special = flag("special") && text.text == content;  // as the library decodes it
  tokens_.push_back({content, text.text, id, flag("single_word"), flag("lstrip"), flag("rstrip"), special});
  end_ = std::max(end_, id + 1);
}

const AddedTokens::Token* AddedTokens::longest(const PrefixTrie& trie, std::u16string_view text,
                                               std::size_t at, std::size_t& length) const {
  int found = -1;
  trie.prefixes(text.substr(at), [&](std::size_t matched, int token) {
    found = token;
    length = matched;
  });
  return found < 0 ? nullptr : &tokens_[static_cast<std::size_t>(found)];
}

std::vector<AddedTokens::Part> AddedTokens::split(std::u16string_view text, bool in_normalized) const {
  const PrefixTrie& trie = in_normalized ? normalized_ : plain_;
  std::vector<Part> parts;
  std::size_t done = 0;  // what `parts` covers
  for (std::size_t at = 0; at < text.size() && !trie.empty();) {
    std::size_t length = 0;
    const Token* token = longest(trie, text, at, length);
    if (!token) {
      ++at;
      continue;
    }
    std::size_t begin = at, end = at + length;
    at = end;
    if (token->single_word && (ends_with_word(text.substr(0, begin)) || starts_with_word(text.substr(end))))
      continue;
    while (token->takes_left_space && begin > done && is_space(text[begin - 1])) --begin;
    if (token->takes_left_space) begin = std::max(begin, done);
    while (token->takes_right_space && end < text.size() && is_space(text[end])) ++end;
    if (done < begin) parts.push_back({done, begin, -1});
    // A token within the spaces that the one before it took counts again, unless it takes spaces itself.
    if (begin < end) parts.push_back({begin, end, token->id});
    done = end;
  }
  if (done < text.size()) parts.push_back({done, text.size(), -1});
  return parts;
}

int AddedTokens::find(std::u16string_view text) const {
  for (const Token& token : tokens_) {
    if (token.text == text) return token.id;
  }
  return -1;
}

const std::u16string* AddedTokens::text_of(int id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &tokens_[found->second].found_text;
}

bool AddedTokens::is_special(int id) const {
  const auto found = by_id_.find(id);
  return found != by_id_.end() && tokens_[found->second].special;
}

}  // namespace sailor
