// A conversation of a data file, and the texts that a chat template makes of it and of its parts.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/data/tokenize/jinja/template.h"

namespace sailor {

class ConversationRecord {
 public:
  // `record` is a JSON object, as ChatTemplate::render() takes it. Throws jinja::TemplateError.
  explicit ConversationRecord(std::string_view record);

  const std::vector<jinja::Value>& messages() const { return messages_; }
  bool is_answer(std::size_t message) const;  // the assistant's

  // The same with `mark` where the first text of a message begins, or where its last one ends: those are its
  // content, or the name of its last tool call. Nothing if it has no such text.
  enum class End { first, last };
  std::optional<ConversationRecord> marked(std::size_t message, End end, const std::string& mark) const;

  // The variables for the first `count` messages.
  std::vector<std::pair<std::string, jinja::Value>> variables(
      std::size_t count, bool add_generation_prompt,
      const std::vector<std::pair<std::string, jinja::Value>>& special_tokens) const;

 private:
  std::vector<jinja::Value> messages_;
  std::vector<std::pair<std::string, jinja::Value>> others_;  // variables
};

}  // namespace sailor
