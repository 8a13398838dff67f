// Tokens of words that occurred already. Thread-safe; bounded: when it is full, no more words are added.
#pragma once

#include <array>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trainer/data/tokenize/huggingface/vocabulary.h"

namespace sailor {

class WordCache {
 public:
  // Appends the tokens of the word; false if it is not here.
  bool find(std::u16string_view word, std::vector<int>& tokens) const {
    Part& part = part_of(word);
    const std::lock_guard lock(part.mutex);
    const auto found = part.words.find(word);
    if (found == part.words.end()) return false;
    tokens.insert(tokens.end(), found->second.begin(), found->second.end());
    return true;
  }

  void add(std::u16string_view word, std::vector<int> tokens) {
    if (word.size() > kLongestWord) return;
    Part& part = part_of(word);
    const std::lock_guard lock(part.mutex);
    if (part.words.size() < kMostWords / kParts) part.words.emplace(word, std::move(tokens));
  }

 private:
  static constexpr std::size_t kParts = 64, kMostWords = 1 << 19, kLongestWord = 64;
  struct Part {
    std::mutex mutex;
    std::unordered_map<std::u16string, std::vector<int>, TextHash, std::equal_to<>> words;
  };
  Part& part_of(std::u16string_view word) const { return parts_[(TextHash()(word) >> 32) % kParts]; }

  mutable std::array<Part, kParts> parts_;
};

}  // namespace sailor
