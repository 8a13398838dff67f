// Tests: `value is NAME`.
#include <algorithm>

#include "trainer/data/tokenize/jinja/builtins.h"
#include "trainer/data/tokenize/jinja/python_text.h"

namespace sailor::jinja {
namespace {

template <bool (*Holds)(const Value&)>
Value tested(const BuiltinCall& call) {
  return Holds(call.subject);
}

bool is_defined(const Value& value) {
  return !value.is_undefined();
}
bool is_undefined(const Value& value) {
  return value.is_undefined();
}
bool is_none(const Value& value) {
  return value.is_none();
}
bool is_string(const Value& value) {
  return value.is_text();
}
bool is_mapping(const Value& value) {
  return value.dictionary() != nullptr;
}
bool is_number(const Value& value) {
  return value.is_number();
}
bool is_boolean(const Value& value) {
  return value.is<bool>();
}
bool is_whole(const Value& value) {
  return value.is<int64_t>();
}
bool is_float(const Value& value) {
  return value.is<double>();
}
bool is_the_true(const Value& value) {
  return value.is<bool>() && value.boolean();
}
bool is_the_false(const Value& value) {
  return value.is<bool>() && !value.boolean();
}
bool is_iterable(const Value& value) {
  return value.is_undefined() || value.is_text() || value.dictionary() || value.sequence();
}
bool is_sequence(const Value& value) {
  const Sequence* sequence = value.sequence();
  return is_iterable(value) &&
         (!sequence || (sequence->kind != SequenceKind::view && sequence->kind != SequenceKind::iterator));
}
bool is_callable(const Value& value) {
  return value.function() != nullptr;
}
Value is_odd(const BuiltinCall& call) {
  return equal(calculate("%", call.subject, int64_t{2}, call.budget), int64_t{1}, call.budget);
}
Value is_even(const BuiltinCall& call) {
  return equal(calculate("%", call.subject, int64_t{2}, call.budget), int64_t{0}, call.budget);
}
Value is_divisible(const BuiltinCall& call) {
  return equal(calculate("%", call.subject, call.at(0), call.budget), int64_t{0}, call.budget);
}
Value is_in(const BuiltinCall& call) {
  return contains(call.at(0), call.subject, call.budget);
}
Value is_lower_case(const BuiltinCall& call) {
  return is_lower(to_text(call.subject, call.budget));
}
Value is_upper_case(const BuiltinCall& call) {
  return is_upper(to_text(call.subject, call.budget));
}
Value is_equal(const BuiltinCall& call) {
  return equal(call.subject, call.at(0), call.budget);
}
Value is_unequal(const BuiltinCall& call) {
  return !equal(call.subject, call.at(0), call.budget);
}
Value is_less(const BuiltinCall& call) {
  return compare(call.subject, call.at(0), call.budget) < 0;
}
Value is_at_most(const BuiltinCall& call) {
  return compare(call.subject, call.at(0), call.budget) <= 0;
}
Value is_greater(const BuiltinCall& call) {
  return compare(call.subject, call.at(0), call.budget) > 0;
}
Value is_at_least(const BuiltinCall& call) {
  return compare(call.subject, call.at(0), call.budget) >= 0;
}

const std::vector<Builtin>& tests() {
  static const std::vector<std::string_view> none, other = {"other"};
  static const std::vector<Builtin> all = {
      {"defined", none, 0, tested<is_defined>},
      {"undefined", none, 0, tested<is_undefined>},
      {"none", none, 0, tested<is_none>},
      {"string", none, 0, tested<is_string>},
      {"mapping", none, 0, tested<is_mapping>},
      {"iterable", none, 0, tested<is_iterable>},
      {"sequence", none, 0, tested<is_sequence>},
      {"number", none, 0, tested<is_number>},
      {"integer", none, 0, tested<is_whole>},
      {"float", none, 0, tested<is_float>},
      {"boolean", none, 0, tested<is_boolean>},
      {"true", none, 0, tested<is_the_true>},
      {"false", none, 0, tested<is_the_false>},
      {"callable", none, 0, tested<is_callable>},
      {"lower", none, 0, is_lower_case},
      {"upper", none, 0, is_upper_case},
      {"odd", none, 0, is_odd},
      {"even", none, 0, is_even},
      {"divisibleby", other, 1, is_divisible},
      {"in", other, 1, is_in},
      {"eq", other, 1, is_equal},
      {"==", other, 1, is_equal},
      {"equalto", other, 1, is_equal},
      {"ne", other, 1, is_unequal},
      {"!=", other, 1, is_unequal},
      {"lt", other, 1, is_less},
      {"<", other, 1, is_less},
      {"lessthan", other, 1, is_less},
      {"le", other, 1, is_at_most},
      {"<=", other, 1, is_at_most},
      {"gt", other, 1, is_greater},
      {">", other, 1, is_greater},
      {"greaterthan", other, 1, is_greater},
      {"ge", other, 1, is_at_least},
      {">=", other, 1, is_at_least},
  };
  return all;
}

}  // namespace

const Builtin* find_test(std::string_view name) {
  const auto found =
      std::find_if(tests().begin(), tests().end(), [name](const Builtin& test) { return test.name == name; });
  return found == tests().end() ? nullptr : &*found;
}

}  // namespace sailor::jinja
