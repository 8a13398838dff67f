// Texts of values, as Python prints them.
#include <fmt/format.h>

#include "trainer/data/tokenize/jinja/python_text.h"
#include "trainer/data/tokenize/jinja/value.h"

namespace sailor::jinja {
namespace {

std::string number_text(const Value& value) {
  if (value.is<bool>()) return value.boolean() ? "True" : "False";
  if (value.is<int64_t>()) return fmt::format("{}", value.integer());
  std::string text = fmt::format("{}", value.number());
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

void append_items(const Sequence& sequence, std::string& text, Budget& budget);

void append(const Value& value, std::string& text, Budget& budget) {
  if (value.is_text()) {
    budget.charge(value.text().size());
    text += value.is_markup() ? fmt::format("Markup({})", quote(value.text())) : quote(value.text());
  } else if (const Dictionary* dictionary = value.dictionary()) {
    text += '{';
    bool first = true;
    for (const auto& [key, item] : dictionary->entries) {
      if (!first) text += ", ";
      append(key, text, budget);
      text += ": ";
      append(item, text, budget);
      first = false;
    }
    text += '}';
  } else if (const Sequence* sequence = value.sequence()) {
    append_items(*sequence, text, budget);
  } else if (value.is_none()) {
    text += "None";
  } else if (value.is_undefined()) {
    text += "Undefined";
  } else if (value.is_number()) {
    text += number_text(value);
  } else {
    throw TemplateError("a " + type_name(value) + " has no text");
  }
  budget.charge(kWorkPerValue);
}

void append_items(const Sequence& sequence, std::string& text, Budget& budget) {
  if (sequence.kind != SequenceKind::list && sequence.kind != SequenceKind::tuple)
    throw TemplateError("the text of a range, a view or an iterator is not supported; use `| list`");
  const bool list = sequence.kind == SequenceKind::list;
  text += list ? '[' : '(';
  bool first = true;
  for (const Value& item : sequence.items) {
    if (!first) text += ", ";
    append(item, text, budget);
    first = false;
  }
  if (!list && sequence.items.size() == 1) text += ',';
  text += list ? ']' : ')';
}

}  // namespace

std::string to_text(const Value& value, Budget& budget) {
  if (value.is_text()) {
    budget.charge(value.text().size());
    return value.text();
  }
  return value.is_undefined() ? "" : representation(value, budget);
}

std::string representation(const Value& value, Budget& budget) {
  std::string text;
  append(value, text, budget);
  return text;
}

}  // namespace sailor::jinja
