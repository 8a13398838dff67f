// Filters, tests, methods and functions that templates may use, each with its parameters.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/data/tokenize/jinja/value.h"

namespace sailor::jinja {

// The call of one.
struct BuiltinCall {
  const Value& subject;                         // what is filtered or tested, or the method's object
  std::vector<std::optional<Value>> arguments;  // by the number of the parameter; nothing if missing
  std::vector<Value> rest;                      // positional arguments beyond, if the builtin takes any
  Budget& budget;

  bool has(std::size_t parameter) const { return arguments[parameter].has_value(); }
  const Value& at(std::size_t parameter) const { return *arguments[parameter]; }
  // Throw TemplateError for a value of another type.
  const std::string& text(std::size_t parameter) const;
  int64_t integer(std::size_t parameter, int64_t otherwise) const;
  bool flag(std::size_t parameter, bool otherwise) const;
};

struct Builtin {
  std::string_view name;
  std::vector<std::string_view> parameters;
  std::size_t required;  // number of parameters, from the first on, that must be given
  Value (*function)(const BuiltinCall&);
  bool takes_rest = false;
};

// nullptr if there is none of that name.
const Builtin* find_filter(std::string_view name);
const Builtin* find_test(std::string_view name);
const Builtin* find_text_method(std::string_view name);
const Builtin* find_dictionary_method(std::string_view name);

// Binds arguments to parameters and calls. Throws TemplateError: an argument too many, unknown or missing.
Value call_builtin(const Builtin& builtin, const Value& subject, std::vector<Value> arguments,
                   std::vector<std::pair<std::string, Value>> named_arguments, Budget& budget);

// value.name: a method, else an item; undefined if absent. Throws TemplateError if the value is not defined.
Value attribute_of(const Value& value, const std::string& name);
// A method as a value, which can only be tested; undefined if there is none of that name.
Value method_of(const Value& value, const std::string& name);
// value[key]: an item, else a method; undefined if absent. Throws as above.
Value item_of(const Value& value, const Value& key, Budget& budget);
// text[begin:end:step] and the like; none = not given.
Value slice_of(const Value& value, const Value& begin, const Value& end, const Value& step, Budget& budget);
bool contains(const Value& container, const Value& value, Budget& budget);

// Operators on two values: + - * / // % **.
Value calculate(std::string_view symbol, const Value& a, const Value& b, Budget& budget);

}  // namespace sailor::jinja
