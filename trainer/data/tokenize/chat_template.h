// Conversations as the text that a model is trained on: rendered by its chat template, with the answers
// marked.
//
// Answers are all messages of the role `assistant`, or the last one alone. With `{% generation %}` blocks in
// the template they are what the blocks enclose. Otherwise an answer is what the template adds to the text of
// the messages before it, behind the generation prompt: its end of turn is part of it. Templates that render
// a message in another way when others follow it (they remove earlier reasoning) are rendered several times
// to find where its answer is in the whole text. Immutable and thread-safe.
#pragma once

#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/spec/error.h"
#include "trainer/data/tokenize/answer_locator.h"
#include "trainer/data/tokenize/jinja/template.h"

namespace sailor {

struct ConversationText {
  std::string text;
  std::vector<ByteRange> answers;  // in order, not empty, without overlap
};

class ChatTemplate {
 public:
  struct Options {
    std::string file;  // of the template; empty = chat_template.jinja next to the tokenizer, else the
                       // chat_template of tokenizer_config.json: the one named `default` of several
    bool last_answer_only = false;
  };

  // Of the tokenizer at a path, which may be empty; nothing if it has none. Throws InputError as
  // jinja::Template and read_tokenizer_config() do.
  static std::optional<ChatTemplate> load(const std::string& tokenizer_path, const Options& options);

  // `record` is a JSON object: `messages`, and optionally `tools`, `documents` and `chat_template_kwargs`,
  // the variables of the template. Throws InputError at `where`: no such object, no answer, an error of the
  // template, or answers that cannot be told from other text.
  ConversationText render(std::string_view record, const Where& where) const;
  // What a model continues with the next message of the assistant: all messages of such a record, of whatever
  // roles, and the generation prompt. Throws InputError at `where`: no such object, an error of the template.
  std::string prompt(std::string_view record, const Where& where) const;

 private:
  ChatTemplate(std::string_view source, const std::string& name, bool last_answer_only)
      : template_(source, name), last_answer_only_(last_answer_only) {}

  jinja::Template template_;
  std::vector<std::pair<std::string, jinja::Value>> special_tokens_;
  bool last_answer_only_;
  std::tm now_{};
};

}  // namespace sailor
