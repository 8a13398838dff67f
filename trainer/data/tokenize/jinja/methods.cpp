// Methods of str and dict.
#include <fmt/format.h>

#include <algorithm>

#include "trainer/data/tokenize/jinja/builtins.h"
#include "trainer/data/tokenize/jinja/python_text.h"

namespace sailor::jinja {
namespace {

const std::string& subject(const BuiltinCall& call) {
  if (call.subject.is_markup()) throw TemplateError("methods of a text marked as safe are not supported");
  call.budget.charge(call.subject.text().size());
  return call.subject.text();
}

Value list_of(const std::vector<std::string_view>& parts, const BuiltinCall& call) {
  std::vector<Value> items;
  for (const std::string_view part : parts) items.emplace_back(std::string(part));
  return make_sequence(std::move(items), SequenceKind::list, call.budget);
}

template <Side Where>
Value strip_text(const BuiltinCall& call) {
  if (!call.has(0) || call.at(0).is_none()) return std::string(strip(subject(call), Where));
  return std::string(strip(subject(call), Where, call.text(0)));
}

template <std::string (*Change)(std::string_view)>
Value change_text(const BuiltinCall& call) {
  return Change(subject(call));
}

std::optional<std::string_view> separator(const BuiltinCall& call) {
  if (!call.has(0) || call.at(0).is_none()) return {};
  if (call.text(0).empty()) throw TemplateError("the separator of split() is empty");
  return call.text(0);
}
Value split_text(const BuiltinCall& call) {
  return list_of(split(subject(call), separator(call), call.integer(1, -1)), call);
}
Value split_text_from_right(const BuiltinCall& call) {
  return list_of(split_from_right(subject(call), separator(call), call.integer(1, -1)), call);
}
Value split_text_lines(const BuiltinCall& call) {
  return list_of(split_lines(subject(call), call.flag(0, false)), call);
}

// startswith() and endswith() take a text or a tuple of texts.
template <bool AtEnd>
Value has_affix(const BuiltinCall& call) {
  const std::string& text = subject(call);
  const auto has = [&](const Value& affix) {
    if (!affix.is_text())
      throw TemplateError("argument 1 must be a str or a tuple of them, is a " + type_name(affix));
    return AtEnd ? text.ends_with(affix.text()) : text.starts_with(affix.text());
  };
  const Sequence* several = call.at(0).sequence();
  if (!several || several->kind != SequenceKind::tuple) return has(call.at(0));
  return std::any_of(several->items.begin(), several->items.end(), has);
}

Value remove_prefix(const BuiltinCall& call) {
  const std::string& text = subject(call);
  return text.starts_with(call.text(0)) ? text.substr(call.text(0).size()) : text;
}
Value remove_suffix(const BuiltinCall& call) {
  const std::string &text = subject(call), &suffix = call.text(0);
  return text.ends_with(suffix) ? text.substr(0, text.size() - suffix.size()) : text;
}

Value replace_text(const BuiltinCall& call) {
  const std::string& text = subject(call);
  call.budget.charge((count_of(text, call.text(0)) + 1) * call.text(1).size());
  return replace(text, call.text(0), call.text(1), call.integer(2, -1));
}

template <bool Last>
Value find_text(const BuiltinCall& call) {
  const std::string& text = subject(call);
  const std::size_t found = Last ? text.rfind(call.text(0)) : text.find(call.text(0));
  if (found == std::string::npos) return int64_t{-1};
  return static_cast<int64_t>(count_code_points(std::string_view(text).substr(0, found)));
}

Value count_text(const BuiltinCall& call) {
  return static_cast<int64_t>(count_of(subject(call), call.text(0)));
}

Value join_texts(const BuiltinCall& call) {
  std::string text;
  bool first = true;
  for (const Value& item : items_of(call.at(0), call.budget)) {
    if (!item.is_text()) throw TemplateError("join() is for texts, not for a " + type_name(item));
    call.budget.charge(item.text().size() + call.subject.text().size());
    if (!first) text += subject(call);
    text += item.text();
    first = false;
  }
  return text;
}

Value is_decimal(const BuiltinCall& call) {
  const std::string& text = subject(call);
  if (std::any_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x80; }))
    throw TemplateError("isdigit() is supported for ASCII texts only");
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}
Value is_space_only(const BuiltinCall& call) {
  return !subject(call).empty() && strip(subject(call), Side::left).empty();
}
Value is_upper_text(const BuiltinCall& call) {
  return is_upper(subject(call));
}
Value is_lower_text(const BuiltinCall& call) {
  return is_lower(subject(call));
}

Value get_item(const BuiltinCall& call) {
  const Value* found = call.subject.dictionary()->find(call.at(0), call.budget);
  return found ? *found : call.has(1) ? call.at(1) : Value();
}

enum class EntryPart { key, value, both };

template <EntryPart Part>
Value view_of(const BuiltinCall& call) {
  std::vector<Value> items;
  for (const auto& [key, value] : call.subject.dictionary()->entries)
    items.push_back(Part == EntryPart::key ? key
                    : Part == EntryPart::value
                        ? value
                        : make_sequence({key, value}, SequenceKind::tuple, call.budget));
  return make_sequence(std::move(items), SequenceKind::view, call.budget);
}

const Builtin* find_in(const std::vector<Builtin>& all, std::string_view name) {
  const auto found =
      std::find_if(all.begin(), all.end(), [name](const Builtin& known) { return known.name == name; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace

const Builtin* find_text_method(std::string_view name) {
  static const std::vector<Builtin> all = {
      {"strip", {"chars"}, 0, strip_text<Side::both>},
      {"lstrip", {"chars"}, 0, strip_text<Side::left>},
      {"rstrip", {"chars"}, 0, strip_text<Side::right>},
      {"split", {"sep", "maxsplit"}, 0, split_text},
      {"rsplit", {"sep", "maxsplit"}, 0, split_text_from_right},
      {"splitlines", {"keepends"}, 0, split_text_lines},
      {"startswith", {"prefix"}, 1, has_affix<false>},
      {"endswith", {"suffix"}, 1, has_affix<true>},
      {"removeprefix", {"prefix"}, 1, remove_prefix},
      {"removesuffix", {"suffix"}, 1, remove_suffix},
      {"replace", {"old", "new", "count"}, 2, replace_text},
      {"find", {"sub"}, 1, find_text<false>},
      {"rfind", {"sub"}, 1, find_text<true>},
      {"count", {"sub"}, 1, count_text},
      {"join", {"iterable"}, 1, join_texts},
      {"upper", {}, 0, change_text<upper>},
      {"lower", {}, 0, change_text<lower>},
      {"capitalize", {}, 0, change_text<capitalize>},
      {"title", {}, 0, change_text<title>},
      {"isdigit", {}, 0, is_decimal},
      {"isspace", {}, 0, is_space_only},
      {"isupper", {}, 0, is_upper_text},
      {"islower", {}, 0, is_lower_text},
  };
  return find_in(all, name);
}

const Builtin* find_dictionary_method(std::string_view name) {
  static const std::vector<Builtin> all = {
      {"get", {"key", "default"}, 1, get_item},
      {"items", {}, 0, view_of<EntryPart::both>},
      {"keys", {}, 0, view_of<EntryPart::key>},
      {"values", {}, 0, view_of<EntryPart::value>},
  };
  return find_in(all, name);
}

}  // namespace sailor::jinja
