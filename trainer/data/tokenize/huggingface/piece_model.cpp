#include "trainer/data/tokenize/huggingface/piece_model.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "trainer/data/tokenize/huggingface/type_field.h"
#include "trainer/data/tokenize/huggingface/unicode.h"

namespace sailor {

bool PieceModel::append_byte_tokens(std::u16string_view text, std::vector<int>& tokens) const {
  const std::size_t before = tokens.size();
  for (const char byte : to_utf8(text)) {
    const int token = byte_tokens_[static_cast<unsigned char>(byte)];
    if (token < 0) {
      tokens.resize(before);
      return false;
    }
    tokens.push_back(token);
  }
  return true;
}

void PieceModel::find_byte_tokens() {
  for (std::size_t byte = 0; byte < byte_tokens_.size(); ++byte)
    byte_tokens_[byte] = vocabulary_.find(to_utf16(fmt::format("<0x{:02X}>", byte)));
}

std::unique_ptr<PieceModel> read_piece_model(const Field& field, const nlohmann::json& tables) {
  // The first files with byte pairs have no type.
  if (field.is_map() && !field.node().find("type") && field.node().find("merges"))
    return read_byte_pairs(field, tables);
  const Field type = type_of(field);
  const std::string name = type.text();
  if (name == "BPE") return read_byte_pairs(field, tables);
  if (name == "Unigram") return read_unigram(field, tables);
  type.fail(fmt::format("\"{}\" is not supported (supported: BPE, Unigram)", name));
}

}  // namespace sailor
