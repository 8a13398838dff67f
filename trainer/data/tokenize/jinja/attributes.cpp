// Attributes of values.
#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include "trainer/data/tokenize/jinja/builtins.h"
#include "trainer/data/tokenize/jinja/functions.h"

namespace sailor::jinja {
namespace {

// Methods of Python's types that change nothing.
bool has_method(const Value& value, std::string_view name) {
  static constexpr std::string_view kOfText =
      " capitalize casefold center count encode endswith expandtabs find format format_map index isalnum "
      "isalpha isascii "
      "isdecimal isdigit isidentifier islower isnumeric isprintable isspace istitle isupper join ljust lower "
      "lstrip "
      "maketrans partition removeprefix removesuffix replace rfind rindex rjust rpartition rsplit rstrip "
      "split splitlines "
      "startswith strip swapcase title translate upper zfill ";
  static constexpr std::string_view kOfDictionary = " copy fromkeys get items keys values ";
  static constexpr std::string_view kOfSequence = " copy count index ";
  const std::string_view all = value.is_text()      ? kOfText
                               : value.dictionary() ? kOfDictionary
                               : value.sequence()   ? kOfSequence
                                                    : " ";
  return all.find(fmt::format(" {} ", name)) != std::string_view::npos;
}

// Methods of dict that would change it, which templates have not.
bool changes_dictionary(std::string_view name) {
  return name == "clear" || name == "pop" || name == "popitem" || name == "setdefault" || name == "update";
}

}  // namespace

Value method_of(const Value& value, const std::string& name) {
  if (has_method(value, name)) return Value(std::make_shared<const Function>(Function{name}));
  static constexpr std::string_view kOfNumbers =
      " real imag numerator denominator conjugate bit_length bit_count to_bytes from_bytes as_integer_ratio "
      "is_integer hex "
      "fromhex start stop step ";
  const Sequence* sequence = value.sequence();
  if ((value.is_number() || (sequence && sequence->kind == SequenceKind::range)) &&
      kOfNumbers.find(fmt::format(" {} ", name)) != std::string_view::npos)
    throw TemplateError(fmt::format("attribute {} of a {} is not supported", name, type_name(value)));
  return Value::undefined(fmt::format("a {} has no {}", type_name(value), name));
}

Value attribute_of(const Value& value, const std::string& name) {
  if (value.is_undefined()) throw TemplateError(*value.why_undefined().why);
  if (const Namespace* names = value.names()) {
    const auto found = std::find_if(names->values.begin(), names->values.end(),
                                    [&name](const auto& known) { return known.first == name; });
    if (found != names->values.end()) return found->second;
  }
  const Dictionary* dictionary = value.dictionary();
  if (!dictionary || has_method(value, name) || changes_dictionary(name)) return method_of(value, name);
  const Value* found = dictionary->find(name);
  return found ? *found : method_of(value, name);
}

}  // namespace sailor::jinja
