#include "trainer/data/tokenize/conversation.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "trainer/data/tokenize/jinja/json_value.h"

namespace sailor {
namespace {

using jinja::TemplateError;
using jinja::Value;
using Entries = std::vector<std::pair<Value, Value>>;

void set(Entries& entries, const char* key, const Value& value) {
  for (auto& [known, old] : entries) {
    if (known.text() != key) continue;
    old = value;
    return;
  }
  entries.emplace_back(key, value);
}

// As the transformers library hands a message to templates: without null, and its reasoning under several
// names.
Value normalized(const Value& message) {
  jinja::Budget budget;
  Entries entries;
  for (const auto& [key, value] : message.dictionary()->entries) {
    if (!value.is_none()) entries.emplace_back(key, value);
  }
  for (const char* name : {"reasoning_content", "thinking", "reasoning"}) {
    const Value* found = message.dictionary()->find(name);
    if (!found || found->is_none()) continue;
    const Value reasoning = *found;
    if (std::none_of(entries.begin(), entries.end(),
                     [](const auto& entry) { return entry.first.text() == "thinking"; }))
      entries.emplace(entries.begin(), "thinking", reasoning);
    set(entries, "reasoning_content", reasoning);
    break;
  }
  return jinja::make_dictionary(std::move(entries), budget);
}

// Keys, and numbers of items: 0 or -1, the last one.
using Path = std::vector<std::string_view>;

// A value in which the text at a path is changed; nothing if there is no text.
std::optional<Value> with_changed_text(const Value& value, const Path& path, std::size_t at,
                                       const std::function<std::string(const std::string&)>& change) {
  jinja::Budget budget;
  if (at == path.size()) return value.is_text() ? std::optional<Value>(change(value.text())) : std::nullopt;
  if (const jinja::Dictionary* dictionary = value.dictionary()) {
    const Value* part = dictionary->find(path[at]);
    std::optional<Value> changed = part ? with_changed_text(*part, path, at + 1, change) : std::nullopt;
    if (!changed) return {};
    Entries entries = dictionary->entries;
    set(entries, std::string(path[at]).c_str(), *changed);
    return jinja::make_dictionary(std::move(entries), budget);
  }
  const jinja::Sequence* sequence = value.sequence();
  if (!sequence || sequence->items.empty() || (path[at] != "0" && path[at] != "-1")) return {};
  std::vector<Value> items = sequence->items;
  Value& item = path[at] == "0" ? items.front() : items.back();
  std::optional<Value> changed = with_changed_text(item, path, at + 1, change);
  if (!changed) return {};
  item = std::move(*changed);
  return jinja::make_sequence(std::move(items), sequence->kind, budget);
}

bool is_list(const Value& value) {
  return value.sequence() != nullptr;
}

}  // namespace

ConversationRecord::ConversationRecord(std::string_view record) {
  const Value root = jinja::parse_json_value(record);
  const jinja::Dictionary* fields = root.dictionary();
  const Value* messages = fields ? fields->find("messages") : nullptr;
  if (!messages || !is_list(*messages) || messages->sequence()->items.empty())
    throw TemplateError(
        R"("messages" must be a list such as [{"role": "user", "content": "a question"}, ...])");
  for (const Value& message : messages->sequence()->items) {
    const Value* role = message.dictionary() ? message.dictionary()->find("role") : nullptr;
    if (!role || !role->is_text())
      throw TemplateError(
          fmt::format(R"(message {} must be an object such as {{"role": "user", "content": "a question"}})",
                      messages_.size() + 1));
    messages_.push_back(normalized(message));
  }
  for (const char* name : {"tools", "documents"}) {
    const Value* value = fields->find(name);
    if (value && !value->is_none() && !is_list(*value))
      throw TemplateError(fmt::format("\"{}\" must be a list, is a {}", name, jinja::type_name(*value)));
    others_.emplace_back(name, value ? *value : Value());
  }
  const Value* arguments = fields->find("chat_template_kwargs");
  if (!arguments || arguments->is_none()) return;
  if (!arguments->dictionary()) throw TemplateError("\"chat_template_kwargs\" must be an object");
  for (const auto& [name, value] : arguments->dictionary()->entries) {
    if (name.text() == "messages" || name.text() == "add_generation_prompt")
      throw TemplateError(fmt::format("\"chat_template_kwargs\" may not have the key {}", name.text()));
    others_.emplace_back(name.text(), value);
  }
}

bool ConversationRecord::is_answer(std::size_t message) const {
  return messages_[message].dictionary()->find("role")->text() == "assistant";
}

std::optional<ConversationRecord> ConversationRecord::marked(std::size_t message, End end,
                                                             const std::string& mark) const {
  static const std::vector<Path> first = {{"content"}, {"content", "0", "text"}};
  static const std::vector<Path> last = {{"tool_calls", "-1", "function", "name"},
                                         {"tool_calls", "-1", "name"},
                                         {"content"},
                                         {"content", "-1", "text"}};
  const bool at_end = end == End::last;
  for (const Path& path : at_end ? last : first) {
    std::optional<Value> changed =
        with_changed_text(messages_[message], path, 0,
                          [&](const std::string& text) { return at_end ? text + mark : mark + text; });
    if (!changed) continue;
    ConversationRecord record = *this;
    record.messages_[message] = std::move(*changed);
    return record;
  }
  return {};
}

std::vector<std::pair<std::string, Value>> ConversationRecord::variables(
    std::size_t count, bool add_generation_prompt,
    const std::vector<std::pair<std::string, Value>>& special_tokens) const {
  jinja::Budget budget;
  std::vector<Value> messages(messages_.begin(), messages_.begin() + static_cast<std::ptrdiff_t>(count));
  std::vector<std::pair<std::string, Value>> all = special_tokens;
  all.insert(all.end(), others_.begin(), others_.end());
  all.emplace_back("messages", jinja::make_sequence(std::move(messages), jinja::SequenceKind::list, budget));
  all.emplace_back("add_generation_prompt", add_generation_prompt);
  return all;
}

}  // namespace sailor
