#include "trainer/data/tokenize/answer_locator.h"

#include <fmt/format.h>

#include <algorithm>

namespace sailor {
namespace {

const std::string kMark = "\U000F5A11mark\U000F5A11";  // of private use: in no text

std::size_t common_prefix(std::string_view a, std::string_view b) {
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

[[noreturn]] void fail(std::size_t message, const std::string& why) {
  throw jinja::TemplateError(fmt::format(
      "cannot tell where the answer in message {} is in the text of the chat template: {}; enclose the "
      "answers in the template by {{% generation %}}, or learn the last one alone (--answers last)",
      message + 1, why));
}

}  // namespace

AnswerLocator::AnswerLocator(const jinja::Template& chat, const ConversationRecord& record,
                             const Tokens& special_tokens, const std::tm& now)
    : chat_(chat),
      record_(record),
      special_tokens_(special_tokens),
      now_(now),
      whole_(render(record, count(), false)) {}

std::string AnswerLocator::render(const ConversationRecord& record, std::size_t messages, bool prompt) const {
  return chat_.render(record.variables(messages, prompt, special_tokens_), now_).text;
}

ByteRange AnswerLocator::locate(std::size_t message) const {
  const ByteRange range{begin(message), end(message)};
  if (range.begin >= range.end) fail(message, "it has no text");
  return range;
}

// Behind the generation prompt. If that opens reasoning, which the whole text has not, the answer begins
// where both differ.
std::size_t AnswerLocator::begin(std::size_t message) const {
  const std::string prompt = render(record_, message, true);
  if (whole_.starts_with(prompt)) return prompt.size();
  const std::string before = render(record_, message, false);
  if (!whole_.starts_with(before)) return begin_between_texts(message, prompt, before);
  std::size_t same = common_prefix(whole_, prompt);
  // The answer itself may begin like the rest of the prompt.
  if (const auto marked = record_.marked(message, ConversationRecord::End::first, kMark))
    same = std::min(same, common_prefix(render(*marked, count(), false), prompt));
  if (same <= before.size()) fail(message, "it does not begin with the generation prompt");
  return same;
}

// Where the messages before have another text when others follow them: behind the only generation prompt
// between the end of the text of the message before and the end of this one's.
std::size_t AnswerLocator::begin_between_texts(std::size_t message, const std::string& prompt,
                                               const std::string& before) const {
  if (message == 0 || !prompt.starts_with(before) || prompt == before)
    fail(message, "the messages before it have another text without it");
  const std::string header = prompt.substr(before.size());
  const std::size_t from = end_of_text(message - 1), to = end_of_text(message);
  const auto is_before_text = [&](std::size_t at) {
    return at != std::string::npos && at + header.size() <= to;
  };
  const std::size_t found = whole_.find(header, from);
  if (!is_before_text(found) || is_before_text(whole_.find(header, found + 1)))
    fail(message, "there is not one generation prompt before it");
  return found + header.size();
}

// Behind what ends the turn when the message is the last one.
std::size_t AnswerLocator::end(std::size_t message) const {
  const std::string last = render(record_, message + 1, false);
  if (whole_.starts_with(last)) return last.size();
  const std::string end_of_turn = behind_text(message, message + 1);
  const std::size_t end = end_of_text(message);
  if (whole_.compare(end, end_of_turn.size(), end_of_turn) != 0)
    fail(message, "its end changes with what follows it");
  return end + end_of_turn.size();
}

std::string AnswerLocator::behind_text(std::size_t message, std::size_t messages) const {
  const auto marked = record_.marked(message, ConversationRecord::End::last, kMark);
  if (!marked) fail(message, fmt::format("message {} has no text", message + 1));
  const std::string text = render(*marked, messages, false);
  const std::size_t at = text.find(kMark);
  if (at == std::string::npos || text.find(kMark, at + 1) != std::string::npos)
    fail(message, fmt::format("message {} is not once in it", message + 1));
  return text.substr(at + kMark.size());
}

std::size_t AnswerLocator::end_of_text(std::size_t message) const {
  const std::string behind = behind_text(message, count());
  if (!whole_.ends_with(behind)) fail(message, "what follows it changes with its content");
  return whole_.size() - behind.size();
}

}  // namespace sailor
