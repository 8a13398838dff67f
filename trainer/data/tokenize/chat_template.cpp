#include "trainer/data/tokenize/chat_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "planner/spec/text_file.h"
#include "trainer/data/tokenize/conversation.h"
#include "trainer/data/tokenize/tokenizer_config.h"

namespace sailor {
namespace {

// Errors of the template, in which the place is one in the template, become errors of the record.
template <class Function>
auto at_record(const Where& where, const Function& function) {
  try {
    return function();
  } catch (const jinja::TemplateError& error) {
    throw InputError(where, error.what());
  } catch (const InputError& error) {
    throw InputError(where, fmt::format("the chat template fails: {}", error.what()));
  }
}

}  // namespace

std::optional<ChatTemplate> ChatTemplate::load(const std::string& tokenizer_path, const Options& options) {
  TokenizerConfig config;
  std::string file = options.file;
  if (!tokenizer_path.empty()) {
    config = read_tokenizer_config(tokenizer_path);
    const auto beside = std::filesystem::path(tokenizer_path).replace_filename("chat_template.jinja");
    if (file.empty() && std::filesystem::exists(beside)) file = beside;
  }
  std::optional<ChatTemplate> made;
  if (!file.empty()) {
    made = ChatTemplate(read_text_file(file), file, options.last_answer_only);
  } else if (!config.chat_templates.empty()) {
    const auto found = std::find_if(config.chat_templates.begin(), config.chat_templates.end(),
                                    [](const auto& named) { return named.first == "default"; });
    if (found == config.chat_templates.end())
      throw InputError(Where{config.path, 0},
                       "chat_template has several, and none is named default; give one with --chat-template");
    made = ChatTemplate(found->second, config.path + ": chat_template", options.last_answer_only);
  }
  if (!made) return {};
  for (const auto& [name, text] : config.special_tokens) made->special_tokens_.emplace_back(name, text);
  const std::time_t now = std::time(nullptr);
  localtime_r(&now, &made->now_);
  return made;
}

ConversationText ChatTemplate::render(std::string_view record, const Where& where) const {
  return at_record(where, [&] {
    const ConversationRecord conversation(record);
    std::vector<std::size_t> answers;
    for (std::size_t i = 0; i < conversation.messages().size(); ++i) {
      if (conversation.is_answer(i)) answers.push_back(i);
    }
    if (answers.empty())
      throw jinja::TemplateError("no message has the role assistant: there is nothing to learn");
    ConversationText made;
    if (template_.has_generation()) {
      jinja::RenderedText rendered = template_.render(
          conversation.variables(conversation.messages().size(), false, special_tokens_), now_);
      made.text = std::move(rendered.text);
      for (const auto& [begin, end] : rendered.generated) made.answers.push_back({begin, end});
      if (made.answers.empty())
        throw jinja::TemplateError("the generation blocks of the template enclose nothing");
      if (last_answer_only_) made.answers.erase(made.answers.begin(), made.answers.end() - 1);
      return made;
    }
    if (last_answer_only_) answers.erase(answers.begin(), answers.end() - 1);
    const AnswerLocator locator(template_, conversation, special_tokens_, now_);
    for (const std::size_t answer : answers) made.answers.push_back(locator.locate(answer));
    made.text = locator.whole();
    for (std::size_t i = 1; i < made.answers.size(); ++i) {
      if (made.answers[i].begin < made.answers[i - 1].end)
        throw jinja::TemplateError(
            "answers overlap in the text of the chat template; train the last one alone "
            "(--answers last)");
    }
    return made;
  });
}

std::string ChatTemplate::prompt(std::string_view record, const Where& where) const {
  return at_record(where, [&] {
    const ConversationRecord conversation(record);
    const std::size_t all = conversation.messages().size();
    return template_.render(conversation.variables(all, true, special_tokens_), now_).text;
  });
}

}  // namespace sailor
