// The tokens of a model by their text and by their number. Thread-safe for reading.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace sailor {

struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::u16string_view text) const { return std::hash<std::u16string_view>()(text); }
};

class Vocabulary {
 public:
  static constexpr int kMostTokens = 1 << 24;

  // Requires 0 <= id < kMostTokens. Of several numbers of a text the last one counts.
  void add(const std::u16string& text, int id) {
    ids_[text] = id;
    if (static_cast<std::size_t>(id) >= texts_.size()) texts_.resize(static_cast<std::size_t>(id) + 1);
    texts_[static_cast<std::size_t>(id)] = text;
  }

  int find(std::u16string_view text) const {  // -1 if absent
    const auto found = ids_.find(text);
    return found == ids_.end() ? -1 : found->second;
  }
  const std::unordered_map<std::u16string, int, TextHash, std::equal_to<>>& ids() const { return ids_; }
  // Empty for a number that no token has.
  const std::u16string& text(int id) const { return texts_[static_cast<std::size_t>(id)]; }
  int end() const { return static_cast<int>(texts_.size()); }  // the largest number + 1

 private:
  std::unordered_map<std::u16string, int, TextHash, std::equal_to<>> ids_;
  std::vector<std::u16string> texts_;
};

}  // namespace sailor
