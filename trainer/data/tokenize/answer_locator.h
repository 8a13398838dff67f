// Where the answers of a conversation are in the text that a chat template without generation blocks makes of
// it. The template is rendered for parts of the conversation, and with a mark in one of its texts.
#pragma once

#include <cstddef>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "trainer/data/tokenize/conversation.h"
#include "trainer/data/tokenize/jinja/template.h"

namespace sailor {

struct ByteRange {
  std::size_t begin = 0, end = 0;
};

class AnswerLocator {
 public:
  using Tokens = std::vector<std::pair<std::string, jinja::Value>>;  // special ones, by their variables

  // All arguments outlive the locator. Throws as jinja::Template::render() does.
  AnswerLocator(const jinja::Template& chat, const ConversationRecord& record, const Tokens& special_tokens,
                const std::tm& now);

  const std::string& whole() const { return whole_; }
  // The answer that a message is, from the end of the generation prompt to the end of its turn. Throws
  // jinja::TemplateError if that is not clear.
  ByteRange locate(std::size_t message) const;

 private:
  std::size_t count() const { return record_.messages().size(); }
  std::string render(const ConversationRecord& record, std::size_t messages, bool prompt) const;
  std::size_t begin(std::size_t message) const;
  std::size_t begin_between_texts(std::size_t message, const std::string& prompt,
                                  const std::string& before) const;
  std::size_t end(std::size_t message) const;
  // What is behind the last text of a message when the conversation ends after `messages` messages.
  std::string behind_text(std::size_t message, std::size_t messages) const;
  std::size_t end_of_text(std::size_t message) const;  // in the whole

  const jinja::Template& chat_;
  const ConversationRecord& record_;
  const Tokens& special_tokens_;
  const std::tm& now_;
  std::string whole_;
};

}  // namespace sailor
