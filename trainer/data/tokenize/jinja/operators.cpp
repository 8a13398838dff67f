// Operators, attributes, items and slices of values.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "trainer/data/tokenize/jinja/builtins.h"
#include "trainer/data/tokenize/jinja/python_text.h"

namespace sailor::jinja {
namespace {

[[noreturn]] void fail_types(std::string_view symbol, const Value& a, const Value& b) {
  for (const Value* value : {&a, &b}) {
    if (value->is_undefined()) throw TemplateError(*value->why_undefined().why);
  }
  throw TemplateError(fmt::format("{} does not take a {} and a {}", symbol, type_name(a), type_name(b)));
}

int64_t exact(bool overflows, const int64_t& result) {  // `result` is read after it is set
  if (overflows) throw TemplateError("integers of more than 64 bits are not supported");
  return result;
}

int64_t integer_power(int64_t base, int64_t exponent) {
  int64_t result = 1;
  while (exponent > 0) {
    if (exponent % 2 == 1) {
      const int64_t factor = result;
      result = exact(__builtin_mul_overflow(factor, base, &result), result);
    }
    exponent /= 2;
    if (exponent > 0) {
      const int64_t root = base;
      base = exact(__builtin_mul_overflow(root, root, &base), base);
    }
  }
  return result;
}

void require_divisor(bool is_zero) {
  if (is_zero) throw TemplateError("division by zero");
}

Value calculate_integers(std::string_view symbol, int64_t a, int64_t b) {
  int64_t result = 0;
  if (symbol == "+") return exact(__builtin_add_overflow(a, b, &result), result);
  if (symbol == "-") return exact(__builtin_sub_overflow(a, b, &result), result);
  if (symbol == "*") return exact(__builtin_mul_overflow(a, b, &result), result);
  if (symbol == "**") return b >= 0 ? Value(integer_power(a, b)) : Value(std::pow(a, b));
  require_divisor(b == 0);
  if (symbol == "/") return static_cast<double>(static_cast<long double>(a) / static_cast<long double>(b));
  if (b == -1) return symbol == "%" ? Value(int64_t{0}) : calculate_integers("-", 0, a);
  const int64_t remainder = a % b;
  const bool down = remainder != 0 && (remainder < 0) != (b < 0);
  if (symbol == "%") return down ? remainder + b : remainder;
  return a / b - (down ? 1 : 0);
}

Value calculate_numbers(std::string_view symbol, double a, double b) {
  if (symbol == "+") return a + b;
  if (symbol == "-") return a - b;
  if (symbol == "*") return a * b;
  if (symbol == "**") {
    if ((a == 0 && b < 0) || (a < 0 && b != std::floor(b)))
      throw TemplateError("the power is not a real number");
    return std::pow(a, b);
  }
  require_divisor(b == 0);
  if (symbol == "/") return a / b;
  double remainder = std::fmod(a, b);
  double quotient = (a - remainder) / b;
  if (remainder != 0 && (remainder < 0) != (b < 0)) {
    remainder += b;
    quotient -= 1;
  }
  if (symbol == "%") return remainder == 0 ? std::copysign(0.0, b) : remainder;
  const double whole = std::floor(quotient);
  return quotient - whole > 0.5 ? whole + 1 : quotient == 0 ? std::copysign(0.0, a / b) : whole;
}

Value add(const Value& a, const Value& b, Budget& budget) {
  if (a.is_text() && b.is_text()) {
    budget.charge(a.text().size() + b.text().size());
    if (!a.is_markup() && !b.is_markup()) return a.text() + b.text();
    const auto escaped = [](const Value& value) {
      return value.is_markup() ? value.text() : escape_html(value.text());
    };
    return Value(escaped(a) + escaped(b), true);
  }
  const Sequence *left = a.sequence(), *right = b.sequence();
  if (!left || !right || left->kind != right->kind ||
      (left->kind != SequenceKind::list && left->kind != SequenceKind::tuple))
    fail_types("+", a, b);
  budget.charge((left->items.size() + right->items.size()) * sizeof(Value));
  std::vector<Value> items = left->items;
  items.insert(items.end(), right->items.begin(), right->items.end());
  return make_sequence(std::move(items), left->kind, budget);
}

Value repeat(const Value& value, int64_t count, Budget& budget) {
  const auto times = static_cast<std::size_t>(std::clamp<int64_t>(count, 0, int64_t{1} << 30));
  if (value.is_text()) {
    budget.charge(value.text().size() * times);
    std::string text;
    for (std::size_t i = 0; i < times && !value.text().empty(); ++i) text += value.text();
    return Value(std::move(text), value.is_markup());
  }
  const Sequence& sequence = *value.sequence();
  budget.charge(sequence.items.size() * times * sizeof(Value));
  std::vector<Value> items;
  for (std::size_t i = 0; i < times && !sequence.items.empty(); ++i)
    items.insert(items.end(), sequence.items.begin(), sequence.items.end());
  return make_sequence(std::move(items), sequence.kind, budget);
}

bool can_repeat(const Value& value) {
  return value.is_text() || (value.sequence() && (value.sequence()->kind == SequenceKind::list ||
                                                  value.sequence()->kind == SequenceKind::tuple));
}

}  // namespace

Value calculate(std::string_view symbol, const Value& a, const Value& b, Budget& budget) {
  if (a.is_integer() && b.is_integer()) return calculate_integers(symbol, a.integer(), b.integer());
  if (a.is_number() && b.is_number()) return calculate_numbers(symbol, a.number(), b.number());
  if (symbol == "+") return add(a, b, budget);
  if (symbol == "*" && can_repeat(a) && b.is_integer()) return repeat(a, b.integer(), budget);
  if (symbol == "*" && a.is_integer() && can_repeat(b)) return repeat(b, a.integer(), budget);
  fail_types(symbol, a, b);
}

Value item_of(const Value& value, const Value& key, Budget& budget) {
  if (value.is_undefined()) throw TemplateError(*value.why_undefined().why);
  const auto absent = [&] {
    return Value::undefined(
        key.is_text() || key.is_number()
            ? fmt::format("a {} has no item {}", type_name(value), representation(key, budget))
            : fmt::format("a {} has no such item", type_name(value)));
  };
  if (const Dictionary* dictionary = value.dictionary()) {
    if (key.dictionary() || (key.sequence() && key.sequence()->kind == SequenceKind::list)) return absent();
    const Value* found = dictionary->find(key, budget);
    return found ? *found : key.is_text() ? method_of(value, key.text()) : absent();
  }
  const Sequence* sequence = value.sequence();
  const bool has_items = value.is_text() || (sequence && sequence->kind != SequenceKind::view &&
                                             sequence->kind != SequenceKind::iterator);
  if (key.is_text()) return method_of(value, key.text());
  if (!has_items || !key.is_integer()) return absent();
  if (value.is_text()) budget.charge(value.text().size() / 8);
  const auto size = static_cast<int64_t>(length_of(value));
  const int64_t index = key.integer() < 0 ? key.integer() + size : key.integer();
  if (index < 0 || index >= size) return absent();
  if (sequence) return sequence->items[static_cast<std::size_t>(index)];
  std::size_t at = 0;
  for (int64_t i = 0; i < index; ++i) next_code_point(value.text(), at);
  const std::size_t begin = at;
  next_code_point(value.text(), at);
  return Value(value.text().substr(begin, at - begin), value.is_markup());
}

Value slice_of(const Value& value, const Value& begin, const Value& end, const Value& step, Budget& budget) {
  if (value.is_undefined()) throw TemplateError(*value.why_undefined().why);
  for (const Value* bound : {&begin, &end, &step}) {
    if (!bound->is_none() && !bound->is_integer())
      throw TemplateError("the bounds of a slice must be integers, not a " + type_name(*bound));
  }
  const Sequence* sequence = value.sequence();
  if (!value.is_text() &&
      (!sequence || sequence->kind == SequenceKind::view || sequence->kind == SequenceKind::iterator))
    throw TemplateError(fmt::format("a {} has no slices", type_name(value)));
  const auto size = static_cast<int64_t>(length_of(value));
  const int64_t by = step.is_none() ? 1 : step.integer();
  if (by == 0) throw TemplateError("the step of a slice is zero");
  const auto bound = [&](const Value& given, int64_t otherwise) {
    if (given.is_none()) return otherwise;
    const int64_t at =
        given.integer() < 0 ? std::max<int64_t>(given.integer(), -size - 1) + size : given.integer();
    return std::clamp<int64_t>(at, by < 0 ? -1 : 0, by < 0 ? size - 1 : size);
  };
  const int64_t first = bound(begin, by < 0 ? size - 1 : 0), last = bound(end, by < 0 ? -1 : size);
  std::vector<std::size_t> chosen;
  for (int64_t i = first; by < 0 ? i > last : i < last;) {
    chosen.push_back(static_cast<std::size_t>(i));
    if (__builtin_add_overflow(i, by, &i)) break;
  }
  budget.charge(chosen.size() * sizeof(Value) + (value.is_text() ? value.text().size() : 0));
  if (sequence) {
    std::vector<Value> items;
    for (const std::size_t i : chosen) items.push_back(sequence->items[i]);
    return make_sequence(std::move(items), sequence->kind, budget);
  }
  const std::vector<std::string_view> all = characters(value.text());
  std::string text;
  for (const std::size_t i : chosen) text += all[i];
  return Value(std::move(text), value.is_markup());
}

bool contains(const Value& container, const Value& value, Budget& budget) {
  if (container.is_undefined()) return false;
  if (container.is_text()) {
    if (!value.is_text()) throw TemplateError(fmt::format("in a str is a str, not a {}", type_name(value)));
    budget.charge(container.text().size() / 8);
    return container.text().find(value.text()) != std::string::npos;
  }
  if (const Dictionary* dictionary = container.dictionary())
    return dictionary->find(value, budget) != nullptr;
  Sequence* sequence = container.sequence();
  if (!sequence) throw TemplateError(fmt::format("there is nothing in a {}", type_name(container)));
  const auto found = std::find_if(sequence->items.begin(), sequence->items.end(),
                                  [&](const Value& item) { return equal(item, value, budget); });
  const bool is_in = found != sequence->items.end();
  if (sequence->kind == SequenceKind::iterator)  // has been read up to what was found
    sequence->items.erase(sequence->items.begin(), is_in ? found + 1 : found);
  return is_in;
}

}  // namespace sailor::jinja
