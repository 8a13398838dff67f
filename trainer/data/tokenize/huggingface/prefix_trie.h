// Finds the words of a list that a text begins with. Thread-safe for reading.
#pragma once

#include <string_view>
#include <vector>

#include "trainer/data/tokenize/huggingface/integer_map.h"

namespace sailor {

class PrefixTrie {
 public:
  // Requires value >= 0 and a word that is not empty; a second value of a word replaces the first.
  void add(std::u16string_view word, int value) {
    int node = 0;
    for (const char16_t unit : word) {
      int child = next_.find(IntegerMap::pair(static_cast<uint32_t>(node), unit));
      if (child < 0) {
        child = static_cast<int>(values_.size());
        values_.push_back(-1);
        next_.set(IntegerMap::pair(static_cast<uint32_t>(node), unit), child);
      }
      node = child;
    }
    values_[static_cast<std::size_t>(node)] = value;
  }

  // Calls found(length, value) for every word that `text` begins with, the shortest first.
  template <class Found>
  void prefixes(std::u16string_view text, Found found) const {
    int node = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      node = next_.find(IntegerMap::pair(static_cast<uint32_t>(node), text[i]));
      if (node < 0) return;
      if (const int value = values_[static_cast<std::size_t>(node)]; value >= 0) found(i + 1, value);
    }
  }

  bool empty() const { return values_.size() == 1; }

 private:
  IntegerMap next_;                 // (node, code unit) -> node; the root is 0
  std::vector<int> values_ = {-1};  // of the word that ends at the node
};

}  // namespace sailor
