// Filters of lists and dictionaries.
#include <fmt/format.h>

#include <algorithm>

#include "trainer/data/tokenize/jinja/builtins.h"
#include "trainer/data/tokenize/jinja/filter_tables.h"
#include "trainer/data/tokenize/jinja/python_text.h"

namespace sailor::jinja {
namespace {

// An attribute such as `function.name` or 0, as filters name it.
Value attribute_named(const Value& item, const Value& name, Budget& budget) {
  if (!name.is_text()) return item_of(item, name, budget);
  Value value = item;
  for (const std::string_view part : split(name.text(), ".", -1)) {
    const bool number =
        !part.empty() && part.size() < 18 && part.find_first_not_of("0123456789") == std::string_view::npos;
    value = item_of(value, number ? Value(int64_t{std::stoll(std::string(part))}) : Value(std::string(part)),
                    budget);
  }
  return value;
}

Value join(const BuiltinCall& call) {
  const std::string between = call.has(0) ? to_text(call.at(0), call.budget) : "";
  const bool attribute = call.has(1) && !call.at(1).is_none();
  std::string text;
  bool first = true;
  for (const Value& item : items_of(call.subject, call.budget)) {
    call.budget.charge(between.size());
    if (!first) text += between;
    text += to_text(attribute ? attribute_named(item, call.at(1), call.budget) : item, call.budget);
    first = false;
  }
  return text;
}

Value first_of(const BuiltinCall& call) {
  Sequence* sequence = call.subject.sequence();
  if (sequence && sequence->kind == SequenceKind::iterator && !sequence->items.empty()) {
    const Value first = sequence->items.front();
    sequence->items.erase(sequence->items.begin());
    return first;
  }
  std::vector<Value> items = items_of(call.subject, call.budget);
  return items.empty() ? Value::undefined("first of nothing") : items.front();
}

Value last_of(const BuiltinCall& call) {
  const Sequence* sequence = call.subject.sequence();
  if (sequence && sequence->kind == SequenceKind::iterator)
    throw TemplateError("last is not for an iterator");
  std::vector<Value> items = items_of(call.subject, call.budget);
  return items.empty() ? Value::undefined("last of nothing") : items.back();
}

Value list_filter(const BuiltinCall& call) {
  return make_sequence(items_of(call.subject, call.budget), SequenceKind::list, call.budget);
}

Value reverse(const BuiltinCall& call) {
  std::vector<Value> items = items_of(call.subject, call.budget);
  std::reverse(items.begin(), items.end());
  if (!call.subject.is_text()) return make_sequence(std::move(items), SequenceKind::iterator, call.budget);
  std::string text;
  for (const Value& character : items) text += character.text();
  return text;
}

std::vector<Value> entries_of(const Value& value, Budget& budget) {
  std::vector<Value> entries;
  const Dictionary* dictionary = value.dictionary();
  if (!dictionary) throw TemplateError("this filter is for a dict, not for a " + type_name(value));
  for (const auto& [key, item] : dictionary->entries)
    entries.push_back(make_sequence({key, item}, SequenceKind::tuple, budget));
  return entries;
}

Value items_filter(const BuiltinCall& call) {
  std::vector<Value> entries;
  if (!call.subject.is_undefined()) entries = entries_of(call.subject, call.budget);
  return make_sequence(std::move(entries), SequenceKind::iterator, call.budget);
}

Value sort_dictionary(const BuiltinCall& call) {
  if (call.subject.is_undefined()) throw TemplateError(*call.subject.why_undefined().why);
  const bool exact_case = call.flag(0, false), backwards = call.flag(2, false);
  const bool by_value = call.has(1) && equal(call.at(1), "value", call.budget);
  if (call.has(1) && !by_value && !equal(call.at(1), "key", call.budget))
    throw TemplateError("dictsort is by key or value");
  std::vector<std::pair<Value, Value>> keyed;  // what to sort by, and the entry
  for (Value& entry : entries_of(call.subject, call.budget)) {
    const Value& by = entry.sequence()->items[by_value ? 1 : 0];
    Value key = by.is_text() && !exact_case ? Value(lower(by.text())) : by;
    keyed.emplace_back(std::move(key), std::move(entry));
  }
  call.budget.charge(keyed.size() * 64);
  std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) {
    return backwards ? compare(b.first, a.first, call.budget) < 0
                     : compare(a.first, b.first, call.budget) < 0;
  });
  std::vector<Value> sorted;
  for (auto& [key, entry] : keyed) sorted.push_back(std::move(entry));
  return make_sequence(std::move(sorted), SequenceKind::list, call.budget);
}

// What map, select and reject look at: nothing in a value that counts as false.
std::vector<Value> looked_at(const BuiltinCall& call) {
  return is_true(call.subject) ? items_of(call.subject, call.budget) : std::vector<Value>();
}

Value map_items(const BuiltinCall& call) {
  std::vector<Value> mapped;
  const bool by_attribute = call.rest.empty();
  if (by_attribute && !call.has(0)) throw TemplateError("map needs a filter or attribute=");
  const Builtin* filter = nullptr;
  if (!by_attribute) {
    filter = call.rest[0].is_text() ? find_filter(call.rest[0].text()) : nullptr;
    if (!filter || filter->takes_rest) throw TemplateError("map has no such filter");
  }
  for (const Value& item : looked_at(call)) {
    if (by_attribute) {
      Value value = attribute_named(item, call.at(0), call.budget);
      mapped.push_back(value.is_undefined() && call.has(1) ? call.at(1) : std::move(value));
    } else {
      mapped.push_back(
          call_builtin(*filter, item, {call.rest.begin() + 1, call.rest.end()}, {}, call.budget));
    }
  }
  return make_sequence(std::move(mapped), SequenceKind::iterator, call.budget);
}

// select, reject, selectattr and rejectattr.
template <bool Keeps, bool OfAttribute>
Value choose(const BuiltinCall& call) {
  const std::size_t at = OfAttribute ? 1 : 0;
  const Builtin* test = nullptr;
  if (call.rest.size() > at) {
    test = call.rest[at].is_text() ? find_test(call.rest[at].text()) : nullptr;
    if (!test) throw TemplateError("select and reject have no such test");
  }
  std::vector<Value> chosen;
  for (Value& item : looked_at(call)) {
    const Value value = OfAttribute ? attribute_named(item, call.rest[0], call.budget) : item;
    const bool holds =
        test ? is_true(call_builtin(
                   *test, value, {call.rest.begin() + static_cast<std::ptrdiff_t>(at) + 1, call.rest.end()},
                   {}, call.budget))
             : is_true(value);
    if (holds == Keeps) chosen.push_back(std::move(item));
  }
  return make_sequence(std::move(chosen), SequenceKind::iterator, call.budget);
}

}  // namespace

const std::vector<Builtin>& sequence_filters() {
  static const std::vector<Builtin> all = {
      {"join", {"d", "attribute"}, 0, join},
      {"first", {}, 0, first_of},
      {"last", {}, 0, last_of},
      {"list", {}, 0, list_filter},
      {"reverse", {}, 0, reverse},
      {"items", {}, 0, items_filter},
      {"dictsort", {"case_sensitive", "by", "reverse"}, 0, sort_dictionary},
      {"map", {"attribute", "default"}, 0, map_items, true},
      {"select", {}, 0, choose<true, false>, true},
      {"reject", {}, 0, choose<false, false>, true},
      {"selectattr", {}, 1, choose<true, true>, true},
      {"rejectattr", {}, 1, choose<false, true>, true},
  };
  return all;
}

}  // namespace sailor::jinja
