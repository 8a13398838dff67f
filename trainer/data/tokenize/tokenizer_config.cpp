#include "trainer/data/tokenize/tokenizer_config.h"

#include <algorithm>
#include <filesystem>

#include "planner/spec/field.h"
#include "planner/spec/json_parts.h"
#include "planner/spec/text_file.h"

namespace sailor {
namespace {

constexpr const char* kSpecialTokens[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                          "pad_token", "cls_token", "mask_token"};

bool is_special_token(std::string_view key) {
  return std::find(std::begin(kSpecialTokens), std::end(kSpecialTokens), key) != std::end(kSpecialTokens);
}

bool is_null(const Field& field) {
  return field.node().kind == DocumentNode::Kind::null;
}

void read_templates(const Field& field, TokenizerConfig& config) {
  if (!field.is_sequence()) {
    config.chat_templates.emplace_back("default", field.text_or_empty());
    return;
  }
  for (const Field& item : field.items()) {
    const MapField named(item, {"name", "template"});
    config.chat_templates.emplace_back(named.required("name").text(),
                                       named.required("template").text_or_empty());
  }
}

}  // namespace

const std::string* TokenizerConfig::special_token(const std::string& name) const {
  const auto found = std::find_if(special_tokens.begin(), special_tokens.end(),
                                  [&name](const auto& token) { return token.first == name; });
  return found == special_tokens.end() ? nullptr : &found->second;
}

TokenizerConfig read_tokenizer_config(const std::string& tokenizer_path) {
  TokenizerConfig config;
  config.path = std::filesystem::path(tokenizer_path).replace_filename("tokenizer_config.json");
  if (!std::filesystem::exists(config.path)) return config;
  const std::string text = keep_json_parts(read_text_file(config.path), [](const JsonPath& at) {
    const bool wanted = at.size() > 1 || is_special_token(at[0]) || at[0] == "chat_template";
    return wanted ? JsonPart::whole : JsonPart::nothing;
  });
  const Document document = parse_json(text, config.path);
  const Field root(document);
  if (!root.is_map()) root.fail_type("an object");
  for (const auto& [key, field] : root.entries()) {
    if (is_null(field)) continue;
    if (key == "chat_template") read_templates(field, config);
    if (!is_special_token(key)) continue;
    // A text, or an object with one.
    const DocumentNode* content = field.node().find("content");
    config.special_tokens.emplace_back(key, Field(document, content ? *content : field.node()).text());
  }
  return config;
}

}  // namespace sailor
