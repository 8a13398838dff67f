#include "trainer/data/tokenize/jinja/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "trainer/data/tokenize/jinja/python_text.h"

namespace sailor::jinja {
namespace {

int levels_of(const Value& value) {
  if (const Sequence* sequence = value.sequence()) return sequence->levels;
  if (const Dictionary* dictionary = value.dictionary()) return dictionary->levels;
  return 0;
}

int levels_above(int levels) {
  if (levels >= kMostValueLevels)
    throw TemplateError(fmt::format("values are nested more than {} levels deep", kMostValueLevels));
  return levels + 1;
}

bool same_kind(const Sequence& a, const Sequence& b) {
  return a.kind == b.kind;
}

}  // namespace

Value Value::undefined(std::string why) {
  Value value;
  value.data_ = Undefined{std::make_shared<const std::string>(std::move(why))};
  return value;
}

const Value* Dictionary::find(std::string_view key) const {
  const auto found = by_text.find(key);
  return found == by_text.end() ? nullptr : &entries[found->second].second;
}

const Value* Dictionary::find(const Value& key, Budget& budget) const {
  if (key.is_text()) return find(std::string_view(key.text()));
  if (key.dictionary() || (key.sequence() && key.sequence()->kind == SequenceKind::list))
    throw TemplateError("a " + type_name(key) + " cannot be a key");
  if (by_text.size() == entries.size()) return nullptr;
  for (const auto& [known, value] : entries) {
    if (!known.is_text() && equal(known, key, budget)) return &value;
  }
  return nullptr;
}

Value make_sequence(std::vector<Value> items, SequenceKind kind, Budget& budget) {
  budget.charge((items.size() + 2) * sizeof(Value));
  int levels = 0;
  for (const Value& item : items) levels = std::max(levels, levels_of(item));
  auto sequence = std::make_shared<Sequence>();
  *sequence = {kind, std::move(items), levels_above(levels)};
  return sequence;
}

Value make_dictionary(std::vector<std::pair<Value, Value>> entries, Budget& budget) {
  budget.charge((entries.size() + 2) * sizeof(entries[0]));
  auto dictionary = std::make_shared<Dictionary>();
  int levels = 0;
  for (auto& [key, value] : entries) {
    levels = std::max({levels, levels_of(value), levels_of(key)});
    if (const Value* known = dictionary->find(key, budget)) {
      const_cast<Value&>(*known) = std::move(value);  // the entry is still being made here
      continue;
    }
    dictionary->entries.emplace_back(std::move(key), std::move(value));
    const Value& added = dictionary->entries.back().first;
    if (added.is_text()) dictionary->by_text.emplace(added.text(), dictionary->entries.size() - 1);
  }
  dictionary->levels = levels_above(levels);
  return std::shared_ptr<const Dictionary>(std::move(dictionary));
}

std::string type_name(const Value& value) {
  if (value.is_undefined()) return "value that is not defined";
  if (value.is_none()) return "None";
  if (value.is<bool>()) return "bool";
  if (value.is<int64_t>()) return "int";
  if (value.is<double>()) return "float";
  if (value.is_text()) return "str";
  if (value.dictionary()) return "dict";
  if (value.names()) return "namespace";
  if (value.function()) return "function";
  switch (value.sequence()->kind) {
    case SequenceKind::list:
      return "list";
    case SequenceKind::tuple:
      return "tuple";
    case SequenceKind::range:
      return "range";
    case SequenceKind::view:
      return "view of a dict";
    case SequenceKind::iterator:
      break;
  }
  return "iterator";
}

bool is_true(const Value& value) {
  if (value.is_undefined() || value.is_none()) return false;
  if (value.is_number()) return value.number() != 0;
  if (value.is_text()) return !value.text().empty();
  if (const Dictionary* dictionary = value.dictionary()) return !dictionary->entries.empty();
  if (const Sequence* sequence = value.sequence())
    return sequence->kind == SequenceKind::iterator || !sequence->items.empty();
  return true;
}

bool equal(const Value& a, const Value& b, Budget& budget) {
  budget.charge(kWorkPerValue);
  if (a.is_integer() && b.is_integer()) return a.integer() == b.integer();
  if (a.is_number() && b.is_number())
    return (a.is<double>() ? static_cast<long double>(a.number()) : static_cast<long double>(a.integer())) ==
           (b.is<double>() ? static_cast<long double>(b.number()) : static_cast<long double>(b.integer()));
  if (a.is_text() && b.is_text()) {
    budget.charge(std::min(a.text().size(), b.text().size()) / 16);
    return a.text() == b.text();
  }
  if (a.is_none() || a.is_undefined()) return a.is_none() ? b.is_none() : b.is_undefined();
  if (a.sequence() && b.sequence()) {
    if (a.sequence() == b.sequence()) return true;
    if (!same_kind(*a.sequence(), *b.sequence()) || a.sequence()->kind == SequenceKind::iterator)
      return false;
    return std::equal(a.sequence()->items.begin(), a.sequence()->items.end(), b.sequence()->items.begin(),
                      b.sequence()->items.end(),
                      [&budget](const Value& x, const Value& y) { return equal(x, y, budget); });
  }
  if (a.dictionary() && b.dictionary()) {
    if (a.dictionary()->entries.size() != b.dictionary()->entries.size()) return false;
    return std::all_of(a.dictionary()->entries.begin(), a.dictionary()->entries.end(),
                       [&](const auto& entry) {
                         const Value* other = b.dictionary()->find(entry.first, budget);
                         return other && equal(entry.second, *other, budget);
                       });
  }
  return (a.names() && a.names() == b.names()) || (a.function() && a.function() == b.function());
}

int compare(const Value& a, const Value& b, Budget& budget) {
  budget.charge(kWorkPerValue);
  if (a.is_number() && b.is_number()) {
    if (a.is_integer() && b.is_integer())
      return a.integer() < b.integer() ? -1 : a.integer() > b.integer() ? 1 : 0;
    return a.number() < b.number() ? -1 : a.number() > b.number() ? 1 : 0;
  }
  if (a.is_text() && b.is_text()) budget.charge(std::min(a.text().size(), b.text().size()) / 16);
  if (a.is_text() && b.is_text()) return a.text().compare(b.text());  // UTF-8 has the order of code points
  const Sequence *left = a.sequence(), *right = b.sequence();
  if (!left || !right || left->kind != right->kind ||
      (left->kind != SequenceKind::list && left->kind != SequenceKind::tuple))
    throw TemplateError(fmt::format("a {} and a {} have no order", type_name(a), type_name(b)));
  const auto [at, other] =
      std::mismatch(left->items.begin(), left->items.end(), right->items.begin(), right->items.end(),
                    [&budget](const Value& x, const Value& y) { return equal(x, y, budget); });
  if (at == left->items.end() || other == right->items.end())
    return static_cast<int>(at == left->items.end() ? 0 : 1) -
           static_cast<int>(other == right->items.end() ? 0 : 1);
  return compare(*at, *other, budget);
}

std::vector<Value> items_of(const Value& value, Budget& budget) {
  if (value.is_undefined()) return {};
  if (Sequence* sequence = value.sequence()) {
    if (sequence->kind == SequenceKind::iterator) return std::exchange(sequence->items, {});
    budget.charge(sequence->items.size() * sizeof(Value));
    return sequence->items;
  }
  std::vector<Value> items;
  if (const Dictionary* dictionary = value.dictionary()) {
    budget.charge(dictionary->entries.size() * sizeof(Value));
    for (const auto& [key, ignored] : dictionary->entries) items.push_back(key);
  } else if (value.is_text()) {
    budget.charge(value.text().size() * 4 * sizeof(Value));
    for (const std::string_view character : characters(value.text()))
      items.emplace_back(std::string(character));
  } else {
    throw TemplateError("there is no loop over a " + type_name(value));
  }
  return items;
}

std::size_t length_of(const Value& value) {
  if (value.is_undefined()) return 0;
  if (value.is_text()) return count_code_points(value.text());
  if (const Dictionary* dictionary = value.dictionary()) return dictionary->entries.size();
  const Sequence* sequence = value.sequence();
  if (!sequence || sequence->kind == SequenceKind::iterator)
    throw TemplateError("a " + type_name(value) + " has no length");
  return sequence->items.size();
}

}  // namespace sailor::jinja
