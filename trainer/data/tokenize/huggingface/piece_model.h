// The `model` of tokenizer.json: turns a piece of text into tokens.
#pragma once

#include <array>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "planner/spec/field.h"
#include "trainer/data/tokenize/huggingface/vocabulary.h"

namespace sailor {

// Immutable and thread-safe.
class PieceModel {
 public:
  virtual ~PieceModel() = default;
  // Appends the tokens of a piece, which is not empty.
  virtual void encode(std::u16string_view piece, std::vector<int>& tokens) const = 0;
  const Vocabulary& vocabulary() const { return vocabulary_; }

 protected:
  // Appends the byte tokens (`<0x0A>`) of the text; false, and none, if the vocabulary lacks one.
  bool append_byte_tokens(std::u16string_view text, std::vector<int>& tokens) const;
  void find_byte_tokens();  // when the vocabulary is complete

  Vocabulary vocabulary_;

 private:
  std::array<int, 256> byte_tokens_{};  // -1 = absent
};

// `field` is the key `model`; `tables` has its large values `vocab` and `merges`, which `field` lacks. Throw
// InputError naming file and key.
std::unique_ptr<PieceModel> read_piece_model(const Field& field, const nlohmann::json& tables);
std::unique_ptr<PieceModel> read_byte_pairs(const Field& field, const nlohmann::json& tables);
std::unique_ptr<PieceModel> read_unigram(const Field& field, const nlohmann::json& tables);

}  // namespace sailor
