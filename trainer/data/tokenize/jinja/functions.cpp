#include "trainer/data/tokenize/jinja/functions.h"

#include <fmt/format.h>

#include <algorithm>

namespace sailor::jinja {
namespace {

constexpr int64_t kLongestRange = 100'000;  // that of Jinja's sandbox

void require_positional(const FunctionCall& call, std::string_view name, std::size_t least,
                        std::size_t most) {
  if (!call.named_arguments.empty() || call.arguments.size() < least || call.arguments.size() > most)
    throw TemplateError(
        fmt::format("{}() takes {} positional arguments", name,
                    least == most ? fmt::format("{}", least) : fmt::format("{} to {}", least, most)));
}

Value range(const FunctionCall& call) {
  require_positional(call, "range", 1, 3);
  std::vector<int64_t> bounds;
  for (const Value& argument : call.arguments) {
    if (!argument.is_integer()) throw TemplateError("range() takes integers, not a " + type_name(argument));
    bounds.push_back(argument.integer());
  }
  const int64_t begin = bounds.size() > 1 ? bounds[0] : 0, end = bounds.size() > 1 ? bounds[1] : bounds[0];
  const int64_t step = bounds.size() > 2 ? bounds[2] : 1;
  if (step == 0) throw TemplateError("the step of range() is zero");
  std::vector<Value> items;
  for (int64_t i = begin; step > 0 ? i < end : i > end;) {
    items.emplace_back(i);
    if (static_cast<int64_t>(items.size()) > kLongestRange)
      throw TemplateError(fmt::format("range() has more than {} values", kLongestRange));
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return make_sequence(std::move(items), SequenceKind::range, call.budget);
}

// What namespace() and dict() are made from: a dictionary, if given, and named arguments.
std::vector<std::pair<Value, Value>> entries(FunctionCall& call, std::string_view name) {
  std::vector<std::pair<Value, Value>> all;
  if (call.arguments.size() > 1)
    throw TemplateError(fmt::format("{}() takes at most one positional argument", name));
  if (!call.arguments.empty()) {
    const Dictionary* dictionary = call.arguments[0].dictionary();
    if (!dictionary)
      throw TemplateError(fmt::format("{}() is made from a dict or named arguments only", name));
    all = dictionary->entries;
  }
  for (auto& [key, value] : call.named_arguments) all.emplace_back(std::move(key), std::move(value));
  return all;
}

Value make_namespace(FunctionCall& call) {
  Namespace& names = call.namespaces.emplace_back();
  for (auto& [key, value] : entries(call, "namespace")) {
    if (!key.is_text() || key.text().starts_with("_"))
      throw TemplateError("a namespace has attributes with names that do not begin with _");
    const auto found = std::find_if(names.values.begin(), names.values.end(),
                                    [&key = key](const auto& known) { return known.first == key.text(); });
    if (found != names.values.end())
      found->second = std::move(value);
    else
      names.values.emplace_back(key.text(), std::move(value));
  }
  call.budget.charge((names.values.size() + 1) * sizeof(names.values[0]));
  return Value(&names);
}

Value raise_exception(const FunctionCall& call) {
  require_positional(call, "raise_exception", 1, 1);
  throw TemplateError(to_text(call.arguments[0], call.budget));
}

Value strftime_now(const FunctionCall& call) {
  require_positional(call, "strftime_now", 1, 1);
  if (!call.arguments[0].is_text()) throw TemplateError("strftime_now() takes a str");
  const std::string format = call.arguments[0].text() + ' ';  // so that the result is never empty
  constexpr std::size_t kMostBytes = 1000;
  char text[kMostBytes];
  const std::size_t size = std::strftime(text, sizeof text, format.c_str(), &call.now);
  if (size == 0) throw TemplateError(fmt::format("strftime_now() makes more than {} bytes", kMostBytes));
  return std::string(text, size - 1);
}

}  // namespace

bool is_function(std::string_view name) {
  return name == "range" || name == "namespace" || name == "dict" || name == "raise_exception" ||
         name == "strftime_now";
}

Value call_function(std::string_view name, FunctionCall call) {
  if (name == "range") return range(call);
  if (name == "namespace") return make_namespace(call);
  if (name == "dict") return make_dictionary(entries(call, name), call.budget);
  if (name == "raise_exception") return raise_exception(call);
  return strftime_now(call);
}

}  // namespace sailor::jinja
