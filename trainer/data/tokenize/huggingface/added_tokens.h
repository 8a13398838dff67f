// The `added_tokens` of tokenizer.json: texts that are one token wherever they occur, before the model sees
// the rest. Immutable; thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "planner/spec/field.h"
#include "trainer/data/tokenize/huggingface/normalizer.h"
#include "trainer/data/tokenize/huggingface/prefix_trie.h"
#include "trainer/data/tokenize/huggingface/vocabulary.h"

namespace sailor {

class AddedTokens {
 public:
  // A part of a text: an added token, or text between them.
  struct Part {
    std::size_t begin, end;
    int token;  // -1 = text
  };

  AddedTokens() = default;  // none
  // `vocabulary` is the model's. Throws InputError naming file, line and key.
  AddedTokens(const Field& field, const Vocabulary& vocabulary, const Normalizer& normalizer);

  // Tokens are found in the text as it is (`in_normalized` false), or in normalized text, as each says.
  std::vector<Part> split(std::u16string_view text, bool in_normalized) const;

  int find(std::u16string_view text) const;     // -1 if absent
  const std::u16string* text_of(int id) const;  // nullptr if absent
  bool is_special(int id) const;                // left out of decoded text
  int end() const { return end_; }              // the largest number + 1

 private:
  struct Token {
    std::u16string text;
    std::u16string found_text;  // normalized, if it is found in normalized text
    int id;
    bool single_word, takes_left_space, takes_right_space, special;
  };

  void read_token(const Field& field, const Vocabulary& vocabulary, const Normalizer& normalizer);
  // The token that begins at `at`, the longest one; nullptr = none. `length` becomes that of its text.
  const Token* longest(const PrefixTrie& trie, std::u16string_view text, std::size_t at,
                       std::size_t& length) const;

  std::vector<Token> tokens_;
  std::unordered_map<int, std::size_t> by_id_;
  PrefixTrie plain_, normalized_;
  int end_ = 0;
};

}  // namespace sailor
