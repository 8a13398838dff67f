// What tokenizer_config.json says about a tokenizer: its special tokens and chat templates.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace sailor {

struct TokenizerConfig {
  std::string path;  // of the file, whether or not there is one
  std::vector<std::pair<std::string, std::string>> special_tokens;  // such as bos_token, and the token's text
  std::vector<std::pair<std::string, std::string>> chat_templates;  // by name: `default` if there is only one

  const std::string* special_token(const std::string& name) const;  // nullptr if it has none
};

// The tokenizer_config.json next to a tokenizer; empty if there is none. Throws InputError naming file, line
// and key.
TokenizerConfig read_tokenizer_config(const std::string& tokenizer_path);

}  // namespace sailor
