#include "trainer/data/tokenize/huggingface/tokenizer_json.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "planner/spec/field.h"
#include "planner/spec/text_file.h"
#include "trainer/data/tokenize/huggingface/added_tokens.h"
#include "trainer/data/tokenize/huggingface/decoder.h"
#include "trainer/data/tokenize/huggingface/normalizer.h"
#include "trainer/data/tokenize/huggingface/piece_model.h"
#include "trainer/data/tokenize/huggingface/post_processor.h"
#include "trainer/data/tokenize/huggingface/pre_tokenizer.h"
#include "trainer/data/tokenize/huggingface/tables.h"
#include "trainer/data/tokenize/huggingface/unicode.h"
#include "trainer/data/tokenize/tokenizer_config.h"

namespace sailor {
namespace {

using Json = nlohmann::json;

class TokenizerJson : public Tokenizer {
 public:
  TokenizerJson(const std::string& path, const std::string& end_of_document);

  int vocabulary() const override { return std::max(model_->vocabulary().end(), added_.end()); }
  bool needs_whole_documents() const override { return true; }
  int end_of_document() const override { return end_of_document_; }
  void encode(const std::string& text, std::vector<int>& tokens) const override;
  void encode_inner(const std::string& text, std::vector<int>& tokens) const override;
  std::string decode(const std::vector<int>& tokens) const override;

 private:
  void read(const MapField& map, const Json& tables);
  void encode_segment(Segment segment, std::vector<int>& tokens) const;
  int id_of(const std::u16string& text) const {
    const int added = added_.find(text);
    return added >= 0 ? added : model_->vocabulary().find(text);
  }

  Normalizer normalizer_;
  PreTokenizer pre_tokenizer_;
  std::unique_ptr<PieceModel> model_;
  AddedTokens added_;
  PostProcessor post_processor_;
  std::optional<Decoder> decoder_;
  int end_of_document_ = -1;
};

// `eos_token` of the configuration next to the tokenizer.
std::string configured_end(const std::string& tokenizer_path) {
  const TokenizerConfig config = read_tokenizer_config(tokenizer_path);
  const std::string* token = config.special_token("eos_token");
  return token ? *token : "";
}

TokenizerJson::TokenizerJson(const std::string& path, const std::string& end_of_document) {
  const std::string text = read_text_file(path);
  const Document document = parse_json(without_tables(text), path);
  // Truncation and padding are left to who calls the library: transformers switches both off.
  const MapField map(Field(document), {"version", "truncation", "padding", "added_tokens", "normalizer",
                                       "pre_tokenizer", "post_processor", "decoder", "model"});
  read(map, parse_tables(text));
  const bool is_set = !end_of_document.empty();
  const std::string name = is_set ? end_of_document : configured_end(path);
  if (name.empty()) return;
  end_of_document_ = id_of(to_utf16(name));
  if (end_of_document_ < 0)
    throw InputError(Where{path, 0},
                     fmt::format("has no token \"{}\", the {}", name,
                                 is_set ? "end of documents" : "eos_token of tokenizer_config.json"));
}

void TokenizerJson::read(const MapField& map, const Json& tables) {
  const Field model = map.required("model");
  if (!model.is_map()) model.fail_type("an object");
  model_ = read_piece_model(model, tables);
  if (const auto field = map.optional("normalizer")) normalizer_ = read_normalizer(*field);
  if (const auto field = map.optional("pre_tokenizer")) pre_tokenizer_ = read_pre_tokenizer(*field);
  if (const auto field = map.optional("post_processor")) post_processor_ = read_post_processor(*field);
  if (const auto field = map.optional("decoder")) decoder_ = read_decoder(*field);
  if (const auto field = map.optional("added_tokens"))
    added_ = AddedTokens(*field, model_->vocabulary(), normalizer_);
}

void TokenizerJson::encode(const std::string& text, std::vector<int>& tokens) const {
  tokens.insert(tokens.end(), post_processor_.before.begin(), post_processor_.before.end());
  encode_inner(text, tokens);
  tokens.insert(tokens.end(), post_processor_.after.begin(), post_processor_.after.end());
}

void TokenizerJson::encode_inner(const std::string& text, std::vector<int>& tokens) const {
  const std::u16string all = to_utf16(text);
  for (const AddedTokens::Part& part : added_.split(all, false)) {
    if (part.token >= 0) {
      tokens.push_back(part.token);
      continue;
    }
    Segment segment{all.substr(part.begin, part.end - part.begin), {}, part.begin == 0};
    normalize(normalizer_, segment);
    for (const AddedTokens::Part& inner : added_.split(segment.text, true)) {
      if (inner.token >= 0)
        tokens.push_back(inner.token);
      else
        encode_segment({segment.text.substr(inner.begin, inner.end - inner.begin),
                        {},
                        segment.at_start && inner.begin == 0},
                       tokens);
    }
  }
}

void TokenizerJson::encode_segment(Segment segment, std::vector<int>& tokens) const {
  segment.ends = {segment.text.size()};
  for (const auto& step : pre_tokenizer_) step(segment);
  std::size_t begin = 0;
  for (const std::size_t end : segment.ends) {
    model_->encode(std::u16string_view(segment.text).substr(begin, end - begin), tokens);
    begin = end;
  }
}

std::string TokenizerJson::decode(const std::vector<int>& tokens) const {
  std::vector<std::string> texts;
  for (const int token : tokens) {
    if (added_.is_special(token)) continue;
    const std::u16string* added = added_.text_of(token);
    if (added)
      texts.push_back(to_utf8(*added));
    else if (token >= 0 && token < model_->vocabulary().end())
      texts.push_back(to_utf8(model_->vocabulary().text(token)));
  }
  if (!decoder_) return fmt::format("{}", fmt::join(texts, " "));
  for (const auto& step : *decoder_) step(texts);
  return fmt::format("{}", fmt::join(texts, ""));
}

}  // namespace

std::unique_ptr<Tokenizer> load_tokenizer_json(const std::string& path, const std::string& end_of_document) {
  return std::make_unique<TokenizerJson>(path, end_of_document);
}

}  // namespace sailor
