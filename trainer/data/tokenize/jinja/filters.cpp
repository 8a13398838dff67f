// Filters: `value | NAME`.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "trainer/data/tokenize/jinja/builtins.h"
#include "trainer/data/tokenize/jinja/filter_tables.h"
#include "trainer/data/tokenize/jinja/json_value.h"
#include "trainer/data/tokenize/jinja/python_text.h"

namespace sailor::jinja {
namespace {

// The subject as a text, as most filters take it.
std::string text_of(const BuiltinCall& call) {
  if (call.subject.is_markup()) throw TemplateError("this filter of a text marked as safe is not supported");
  return to_text(call.subject, call.budget);
}

template <std::string (*Change)(std::string_view)>
Value change(const BuiltinCall& call) {
  return Change(text_of(call));
}

Value trim(const BuiltinCall& call) {
  const std::string text = text_of(call);
  if (!call.has(0) || call.at(0).is_none()) return std::string(strip(text, Side::both));
  return std::string(strip(text, Side::both, call.text(0)));
}

Value length(const BuiltinCall& call) {
  if (call.subject.is_text()) call.budget.charge(call.subject.text().size() / 8);
  return static_cast<int64_t>(length_of(call.subject));
}

Value as_text(const BuiltinCall& call) {
  return call.subject.is_text() ? call.subject : Value(to_text(call.subject, call.budget));
}

Value as_safe(const BuiltinCall& call) {
  return Value(to_text(call.subject, call.budget), true);
}

Value otherwise(const BuiltinCall& call) {
  const bool lacks = call.subject.is_undefined() || (call.flag(1, false) && !is_true(call.subject));
  if (!lacks) return call.subject;
  return call.has(0) ? call.at(0) : Value("");
}

Value replace_filter(const BuiltinCall& call) {
  const std::string text = text_of(call);
  const std::string old = to_text(call.at(0), call.budget), with = to_text(call.at(1), call.budget);
  call.budget.charge((count_of(text, old) + 1) * with.size());
  const bool limited = call.has(2) && !call.at(2).is_none();
  return replace(text, old, with, limited ? call.integer(2, -1) : -1);
}

// A number as Python's float() reads it.
std::optional<double> parse_number(std::string_view text) {
  text = strip(text, Side::both);
  std::string_view digits = text;
  if (digits.starts_with('+') || digits.starts_with('-')) digits.remove_prefix(1);
  const std::string word = lower(digits);
  const bool special = word == "inf" || word == "infinity" || word == "nan";
  if (!special && (digits.find_first_not_of("0123456789.eE+-") != std::string_view::npos ||
                   digits.find_first_of("0123456789") == std::string_view::npos))
    return {};
  const std::string all(text);
  char* end = nullptr;
  const double value = std::strtod(all.c_str(), &end);
  if (end != all.c_str() + all.size()) return {};
  return value;
}

std::optional<int64_t> whole_part(double value) {
  if (!(std::fabs(value) < 9e18)) return {};
  return static_cast<int64_t>(value);
}

Value as_integer(const BuiltinCall& call) {
  const Value& value = call.subject;
  const Value fallback = call.has(0) ? call.at(0) : Value(int64_t{0});
  if (value.is_undefined()) throw TemplateError(*value.why_undefined().why);
  if (value.is_integer()) return value.integer();
  std::optional<double> number;
  if (value.is<double>()) {
    number = value.number();
  } else if (value.is_text()) {
    std::string_view text = strip(value.text(), Side::both);
    if (text.find('_') != std::string_view::npos) throw TemplateError("numbers with _ are not supported");
    int64_t whole = 0;
    if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
    const auto result = std::from_chars(text.data(), text.data() + text.size(), whole);
    if (!text.empty() && result.ec == std::errc() && result.ptr == text.data() + text.size()) return whole;
    number = parse_number(value.text());
  }
  const std::optional<int64_t> whole = number ? whole_part(*number) : std::nullopt;
  return whole ? Value(*whole) : fallback;
}

Value as_float(const BuiltinCall& call) {
  const Value& value = call.subject;
  if (value.is_undefined()) throw TemplateError(*value.why_undefined().why);
  if (value.is_number()) return value.number();
  const std::optional<double> number = value.is_text() ? parse_number(value.text()) : std::nullopt;
  return number ? Value(*number) : call.has(0) ? call.at(0) : Value(0.0);
}

Value absolute(const BuiltinCall& call) {
  if (!call.subject.is_number())
    throw TemplateError("abs is for numbers, not for a " + type_name(call.subject));
  if (call.subject.is<double>()) return std::fabs(call.subject.number());
  return call.subject.integer() < 0 ? calculate("-", int64_t{0}, call.subject, call.budget)
                                    : Value(call.subject.integer());
}

Value json_text(const BuiltinCall& call) {
  JsonForm form;
  form.ascii_only = call.flag(0, false);
  if (call.has(1) && !call.at(1).is_none()) {
    form.between_items = ",";
    const Value& indent = call.at(1);
    constexpr int64_t kMostSpaces = 1000;
    form.indent =
        indent.is_text()
            ? indent.text()
            : std::string(static_cast<std::size_t>(std::clamp<int64_t>(call.integer(1, 0), 0, kMostSpaces)),
                          ' ');
  }
  if (call.has(2) && !call.at(2).is_none()) {
    const std::vector<Value> separators = items_of(call.at(2), call.budget);
    if (separators.size() != 2 || !separators[0].is_text() || !separators[1].is_text())
      throw TemplateError("the separators of tojson must be two texts");
    form.between_items = separators[0].text();
    form.after_key = separators[1].text();
  }
  form.sort_keys = call.flag(3, false);
  return to_json(call.subject, form, call.budget);
}

}  // namespace

const std::vector<Builtin>& text_filters() {
  static const std::vector<Builtin> all = {
      {"trim", {"chars"}, 0, trim},
      {"length", {}, 0, length},
      {"count", {}, 0, length},
      {"string", {}, 0, as_text},
      {"safe", {}, 0, as_safe},
      {"upper", {}, 0, change<upper>},
      {"lower", {}, 0, change<lower>},
      {"title", {}, 0, change<title_of_words>},
      {"capitalize", {}, 0, change<capitalize>},
      {"replace", {"old", "new", "count"}, 2, replace_filter},
      {"default", {"default_value", "boolean"}, 0, otherwise},
      {"d", {"default_value", "boolean"}, 0, otherwise},
      {"int", {"default"}, 0, as_integer},
      {"float", {"default"}, 0, as_float},
      {"abs", {}, 0, absolute},
      {"tojson", {"ensure_ascii", "indent", "separators", "sort_keys"}, 0, json_text},
  };
  return all;
}

const Builtin* find_filter(std::string_view name) {
  for (const std::vector<Builtin>* table : {&text_filters(), &sequence_filters()}) {
    const auto found = std::find_if(table->begin(), table->end(),
                                    [name](const Builtin& filter) { return filter.name == name; });
    if (found != table->end()) return &*found;
  }
  return nullptr;
}

}  // namespace sailor::jinja
