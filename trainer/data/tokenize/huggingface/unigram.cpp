// The unigram model: of all ways to divide a piece into tokens, the one whose scores have the largest sum.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "trainer/data/tokenize/huggingface/piece_model.h"
#include "trainer/data/tokenize/huggingface/prefix_trie.h"
#include "trainer/data/tokenize/huggingface/tables.h"
#include "trainer/data/tokenize/huggingface/unicode.h"

namespace sailor {
namespace {

class Unigram : public PieceModel {
 public:
  Unigram(const Field& field, const nlohmann::json& tables);

  void encode(std::u16string_view piece, std::vector<int>& tokens) const override;

 private:
  // The best division of the text up to here: its score, and its last token.
  struct Node {
    double score = 0;
    std::ptrdiff_t begin = -1;  // of the last token; -1 = none ends here
    int token = -1;
  };

  std::vector<Node> best_divisions(std::u16string_view piece) const;
  void append(std::u16string_view text, std::vector<int>& tokens) const;

  Where where_;
  PrefixTrie trie_;
  std::vector<double> scores_;
  int unknown_ = -1;
  double unknown_score_ = 0;
  bool byte_fallback_ = false;
};

Unigram::Unigram(const Field& field, const nlohmann::json& tables) : where_(field.where()) {
  const MapField map(field, {"type", "unk_id", "vocab", "byte_fallback"});
  const auto& vocab = table_of(tables, "vocab");
  if (!vocab.is_array() || vocab.empty()) fail_table(field, "vocab", "must be an array of [token, score]");
  double least = std::numeric_limits<double>::infinity();
  for (const auto& entry : vocab) {
    const auto id = static_cast<int>(scores_.size());
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() || !entry[1].is_number() ||
        id >= Vocabulary::kMostTokens)
      fail_table(field, fmt::format("vocab[{}]", id), "must be [token, score]");
    const std::u16string text = to_utf16(entry[0].get<std::string>());
    vocabulary_.add(text, id);
    if (!text.empty()) trie_.add(text, id);
    scores_.push_back(entry[1].get<double>());
    least = std::min(least, scores_.back());
  }
  find_byte_tokens();
  if (const auto id = map.optional("unk_id"))
    unknown_ = id->integer<int>(0, static_cast<int>(scores_.size()) - 1);
  if (const auto fallback = map.optional("byte_fallback")) byte_fallback_ = fallback->boolean();
  constexpr double kPenalty = 10;
  unknown_score_ = least - kPenalty;
}

std::vector<Unigram::Node> Unigram::best_divisions(std::u16string_view piece) const {
  std::vector<Node> best(piece.size() + 1);
  for (std::size_t begin = 0; begin < piece.size();) {
    std::size_t next = begin;
    next_code_point(piece, next);
    bool has_character = false;
    auto consider = [&](std::size_t end, int token, double score) {
      Node& node = best[end];
      if (const double sum = score + best[begin].score; node.begin < 0 || sum > node.score)
        node = {sum, static_cast<std::ptrdiff_t>(begin), token};
    };
    trie_.prefixes(piece.substr(begin), [&](std::size_t length, int token) {
      consider(begin + length, token, scores_[static_cast<std::size_t>(token)]);
      has_character = has_character || begin + length == next;
    });
    if (!has_character) {
      if (unknown_ < 0)
        throw InputError(where_,
                         fmt::format("model.unk_id is missing, and \"{}\" in the text is not in model.vocab",
                                     to_utf8(piece.substr(begin, next - begin))));
      consider(next, unknown_, unknown_score_);
    }
    begin = next;
  }
  return best;
}

void Unigram::append(std::u16string_view text, std::vector<int>& tokens) const {
  const int token = vocabulary_.find(text);
  if (token >= 0)
    tokens.push_back(token);
  else if (!byte_fallback_ || !append_byte_tokens(text, tokens))
    tokens.push_back(unknown_);
}

void Unigram::encode(std::u16string_view piece, std::vector<int>& tokens) const {
  const std::vector<Node> best = best_divisions(piece);
  std::vector<std::pair<std::size_t, std::size_t>> parts;  // from the last one on; unknown ones are one
  bool previous_unknown = false;
  for (std::size_t end = piece.size(); end > 0;) {
    const auto begin = static_cast<std::size_t>(best[end].begin);
    const bool unknown = best[end].token == unknown_;
    if (unknown && previous_unknown)
      parts.back().first = begin;
    else
      parts.emplace_back(begin, end);
    previous_unknown = unknown;
    end = begin;
  }
  for (auto part = parts.rbegin(); part != parts.rend(); ++part)
    append(piece.substr(part->first, part->second - part->first), tokens);
}

}  // namespace

std::unique_ptr<PieceModel> read_unigram(const Field& field, const nlohmann::json& tables) {
  return std::make_unique<Unigram>(field, tables);
}

}  // namespace sailor
