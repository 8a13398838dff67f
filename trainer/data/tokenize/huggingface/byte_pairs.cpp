// Byte pair encoding: a word begins as its characters; the pair of neighbours whose merge has the lowest rank
// is joined until no pair has one.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <queue>
#include <utility>

#include "trainer/data/tokenize/huggingface/integer_map.h"
#include "trainer/data/tokenize/huggingface/piece_model.h"
#include "trainer/data/tokenize/huggingface/tables.h"
#include "trainer/data/tokenize/huggingface/unicode.h"
#include "trainer/data/tokenize/huggingface/word_cache.h"

namespace sailor {
namespace {

using Json = nlohmann::json;

struct Merge {
  int rank, token;
};

struct Symbol {
  int token;
  int previous, next;  // -1 = none
};

struct Candidate {
  int rank, position, token;
  bool operator>(const Candidate& other) const {
    return std::pair(rank, position) > std::pair(other.rank, other.position);
  }
};

char32_t first_character(std::u16string_view text) {
  std::size_t at = 0;
  return next_code_point(text, at);
}
char32_t last_character(std::u16string_view text) {
  std::size_t at = text.size() - 1;
  if (at > 0 && text[at] >= 0xdc00 && text[at] < 0xe000) --at;
  return next_code_point(text, at);
}

class BytePairs : public PieceModel {
 public:
  BytePairs(const Field& field, const Json& tables);

  void encode(std::u16string_view piece, std::vector<int>& tokens) const override;

 private:
  void read_vocabulary(const Field& field, const Json& tables);
  void read_merges(const Field& field, const Json& tables);
  void add_merge(const Field& field, std::size_t rank, const std::string& first, const std::string& second);
  bool may_join(char32_t before, char32_t after) const;
  void encode_word(std::u16string_view word, std::vector<int>& tokens) const;
  std::vector<int> tokens_of_characters(std::u16string_view word) const;
  void merge(std::vector<int>& tokens) const;

  Where where_;
  std::u16string prefix_, suffix_;  // of the characters of a word that are not first, or are last
  std::optional<int> unknown_;
  bool has_unknown_ = false, fuse_unknown_ = false, byte_fallback_ = false, ignore_merges_ = false;
  IntegerMap merges_by_pair_;  // to the index in merges_
  std::vector<Merge> merges_;
  IntegerMap characters_;  // tokens of one character
  IntegerMap joints_;      // (last character of a merge's first token, first one of its second)
  std::unique_ptr<WordCache> words_ = std::make_unique<WordCache>();
};

std::u16string text_of(const std::optional<Field>& field) {
  return field ? to_utf16(field->text_or_empty()) : std::u16string();
}

BytePairs::BytePairs(const Field& field, const Json& tables) : where_(field.where()) {
  const MapField map(
      field, {"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk",
              "byte_fallback", "ignore_merges", "vocab", "merges"});
  if (const auto dropout = map.optional("dropout"); dropout && dropout->number(0, 1) > 0)
    dropout->fail("dropout of merges is not supported; a text must always have the same tokens");
  prefix_ = text_of(map.optional("continuing_subword_prefix"));
  suffix_ = text_of(map.optional("end_of_word_suffix"));
  auto flag = [&map](const char* key) {
    const auto value = map.optional(key);
    return value && value->boolean();
  };
  fuse_unknown_ = flag("fuse_unk");
  byte_fallback_ = flag("byte_fallback");
  ignore_merges_ = flag("ignore_merges");
  read_vocabulary(field, tables);
  read_merges(field, tables);
  // An unknown token that the vocabulary lacks is an error once it is needed.
  if (const auto unknown = map.optional("unk_token")) {
    has_unknown_ = true;
    if (const int id = vocabulary_.find(text_of(unknown)); id >= 0) unknown_ = id;
  }
}

void BytePairs::read_vocabulary(const Field& field, const Json& tables) {
  const Json& vocab = table_of(tables, "vocab");
  if (!vocab.is_object() || vocab.empty())
    fail_table(field, "vocab", "must be an object with a number per token");
  for (const auto& [text, id] : vocab.items()) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= Vocabulary::kMostTokens)
      fail_table(field, "vocab",
                 fmt::format("\"{}\" must have a number from 0 to {}", text, Vocabulary::kMostTokens - 1));
    const std::u16string characters = to_utf16(text);
    vocabulary_.add(characters, id.get<int>());
    std::size_t at = 0;
    if (characters.empty()) continue;
    const char32_t first = next_code_point(characters, at);
    if (at == characters.size()) characters_.set(first, id.get<int>());
  }
  find_byte_tokens();
}

void BytePairs::read_merges(const Field& field, const Json& tables) {
  const Json& merges = table_of(tables, "merges");
  if (!merges.is_array()) fail_table(field, "merges", "must be an array of pairs of tokens");
  for (const Json& merge : merges) {
    const std::size_t rank = merges_.size();
    if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      add_merge(field, rank, merge[0].get<std::string>(), merge[1].get<std::string>());
      continue;
    }
    const std::string text = merge.is_string() ? merge.get<std::string>() : "";
    if (text.starts_with("#version")) continue;
    const std::size_t space = text.find(' ');
    if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos)
      fail_table(field, fmt::format("merges[{}]", rank),
                 "must be two tokens with a space between them, or an array of two tokens");
    add_merge(field, rank, text.substr(0, space), text.substr(space + 1));
  }
}

void BytePairs::add_merge(const Field& field, std::size_t rank, const std::string& first,
                          const std::string& second) {
  const std::u16string left = to_utf16(first), right = to_utf16(second);
  auto id_of = [&](const std::u16string& text) {
    const int id = vocabulary_.find(text);
    if (id < 0)
      fail_table(field, fmt::format("merges[{}]", rank),
                 fmt::format("token \"{}\" is not in model.vocab", to_utf8(text)));
    return id;
  };
  const int left_id = id_of(left), right_id = id_of(right);
  // The prefix is cut off by its length.
  const std::u16string joined = left + (right.size() >= prefix_.size() ? right.substr(prefix_.size()) : u"");
  merges_by_pair_.set(IntegerMap::pair(static_cast<uint32_t>(left_id), static_cast<uint32_t>(right_id)),
                      static_cast<int>(rank));
  merges_.push_back({static_cast<int>(rank), id_of(joined)});
  if (!left.empty() && !right.empty())
    joints_.set(IntegerMap::pair(last_character(left), first_character(right)), 1);
}

// Whether a token can contain the end of one character and the beginning of the next. A cut where none can
// does not change the tokens.
bool BytePairs::may_join(char32_t before, char32_t after) const {
  if (!prefix_.empty() || !suffix_.empty()) return true;
  if (characters_.find(before) < 0 || characters_.find(after) < 0) return true;
  return joints_.find(IntegerMap::pair(before, after)) >= 0;
}

void BytePairs::encode(std::u16string_view piece, std::vector<int>& tokens) const {
  if (ignore_merges_) {
    if (const int id = vocabulary_.find(piece); id >= 0) {
      tokens.push_back(id);
      return;
    }
  }
  std::size_t begin = 0, at = 0;
  char32_t before = next_code_point(piece, at);
  while (at < piece.size()) {
    const std::size_t boundary = at;
    const char32_t after = next_code_point(piece, at);
    if (!may_join(before, after)) {
      encode_word(piece.substr(begin, boundary - begin), tokens);
      begin = boundary;
    }
    before = after;
  }
  encode_word(piece.substr(begin), tokens);
}

void BytePairs::encode_word(std::u16string_view word, std::vector<int>& tokens) const {
  if (words_->find(word, tokens)) return;
  std::vector<int> merged = tokens_of_characters(word);
  merge(merged);
  tokens.insert(tokens.end(), merged.begin(), merged.end());
  words_->add(word, std::move(merged));
}

std::vector<int> BytePairs::tokens_of_characters(std::u16string_view word) const {
  std::vector<int> tokens;
  bool unknown_waits = false;
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t first = at;
    const char32_t c = next_code_point(word, at);
    std::u16string text(word.substr(first, at - first));
    if (first > 0) text.insert(0, prefix_);
    if (at == word.size()) text += suffix_;
    const bool plain = prefix_.empty() && suffix_.empty();
    if (const int id = plain ? characters_.find(c) : vocabulary_.find(text); id >= 0) {
      if (unknown_waits) tokens.push_back(*unknown_);
      unknown_waits = false;
      tokens.push_back(id);
    } else if (byte_fallback_ && append_byte_tokens(text, tokens)) {
      // An unknown token that waits comes after these, as in the tokenizers library.
    } else if (has_unknown_) {
      if (!unknown_)
        throw InputError(
            where_, fmt::format("model.unk_token is not in model.vocab, and neither is \"{}\" in the text",
                                to_utf8(text)));
      if (unknown_waits && !fuse_unknown_) tokens.push_back(*unknown_);
      unknown_waits = true;
    }
  }
  if (unknown_waits) tokens.push_back(*unknown_);
  return tokens;
}

void BytePairs::merge(std::vector<int>& tokens) const {
  if (tokens.size() < 2) return;
  std::vector<Symbol> symbols;
  for (int i = 0; i < static_cast<int>(tokens.size()); ++i)
    symbols.push_back({tokens[static_cast<std::size_t>(i)], i - 1, i + 1});
  symbols.back().next = -1;
  auto at = [&symbols](int i) -> Symbol& { return symbols[static_cast<std::size_t>(i)]; };
  std::vector<Candidate> storage;
  storage.reserve(tokens.size());
  std::priority_queue queue(std::greater<>(), std::move(storage));
  auto merge_at = [&](int position) {
    return merges_by_pair_.find(IntegerMap::pair(static_cast<uint32_t>(at(position).token),
                                                 static_cast<uint32_t>(at(at(position).next).token)));
  };
  auto propose = [&](int position) {
    if (position < 0 || at(position).next < 0) return;
    if (const int found = merge_at(position); found >= 0) {
      const Merge& merge = merges_[static_cast<std::size_t>(found)];
      queue.push({merge.rank, position, merge.token});
    }
  };
  for (int i = 0; i < static_cast<int>(symbols.size()); ++i) propose(i);
  constexpr int kGone = -1;
  for (; !queue.empty();) {
    const Candidate best = queue.top();
    queue.pop();
    Symbol& left = at(best.position);
    if (left.token == kGone || left.next < 0) continue;
    if (const int found = merge_at(best.position);
        found < 0 || merges_[static_cast<std::size_t>(found)].token != best.token)
      continue;  // one of the two has changed since
    Symbol& right = at(left.next);
    left.token = best.token;
    left.next = right.next;
    right.token = kGone;
    if (left.next >= 0) at(left.next).previous = best.position;
    propose(left.previous);
    propose(best.position);
  }
  tokens.clear();
  for (int i = 0; i >= 0; i = at(i).next) tokens.push_back(at(i).token);
}

}  // namespace

std::unique_ptr<PieceModel> read_byte_pairs(const Field& field, const nlohmann::json& tables) {
  return std::make_unique<BytePairs>(field, tables);
}

}  // namespace sailor
