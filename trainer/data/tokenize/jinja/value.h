// Values of templates: those of Python that JSON has, and functions, namespaces and what is not defined.
//
// A value is small and shares what it refers to. Texts, sequences and dictionaries never change, except that
// an iterator is used up; a namespace belongs to its rendering. Values are at most kMostValueLevels deep.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "trainer/data/tokenize/jinja/error.h"

namespace sailor::jinja {

class Value;
struct Sequence;
struct Dictionary;
struct Namespace;
struct Function;

struct Undefined {
  std::shared_ptr<const std::string> why;  // for messages, e.g. `"tools" is not defined`
};
struct None {};
struct Text {
  std::shared_ptr<const std::string> utf8;
  bool markup = false;  // the result of `safe`, which escapes what is added to it
};

class Value {
 public:
  Value() : data_(None{}) {}
  Value(bool value) : data_(value) {}
  Value(int64_t value) : data_(value) {}
  Value(double value) : data_(value) {}
  Value(std::string text, bool markup = false)
      : data_(Text{std::make_shared<const std::string>(std::move(text)), markup}) {}
  Value(const char* text) : Value(std::string(text)) {}
  Value(std::shared_ptr<Sequence> sequence) : data_(std::move(sequence)) {}
  Value(std::shared_ptr<const Dictionary> dictionary) : data_(std::move(dictionary)) {}
  Value(std::shared_ptr<const Function> function) : data_(std::move(function)) {}
  explicit Value(Namespace* names) : data_(names) {}
  static Value undefined(std::string why);

  template <class T>
  bool is() const {
    return std::holds_alternative<T>(data_);
  }
  bool is_undefined() const { return is<Undefined>(); }
  bool is_none() const { return is<None>(); }
  bool is_text() const { return is<Text>(); }
  bool is_number() const { return is<bool>() || is<int64_t>() || is<double>(); }
  bool is_integer() const { return is<bool>() || is<int64_t>(); }
  bool is_markup() const { return is_text() && std::get<Text>(data_).markup; }

  // Each requires the kind. A boolean is an integer, an integer a number.
  const std::string& text() const { return *std::get<Text>(data_).utf8; }
  int64_t integer() const { return is<bool>() ? std::get<bool>(data_) : std::get<int64_t>(data_); }
  double number() const { return is<double>() ? std::get<double>(data_) : static_cast<double>(integer()); }
  bool boolean() const { return std::get<bool>(data_); }
  const Undefined& why_undefined() const { return std::get<Undefined>(data_); }

  // nullptr if it is something else.
  Sequence* sequence() const { return pointer<std::shared_ptr<Sequence>>(); }
  const Dictionary* dictionary() const { return pointer<std::shared_ptr<const Dictionary>>(); }
  const Function* function() const { return pointer<std::shared_ptr<const Function>>(); }
  Namespace* names() const { return is<Namespace*>() ? std::get<Namespace*>(data_) : nullptr; }

 private:
  template <class P>
  auto pointer() const -> decltype(std::declval<P>().get()) {
    const P* held = std::get_if<P>(&data_);
    return held ? held->get() : nullptr;
  }

  std::variant<None, Undefined, bool, int64_t, double, Text, std::shared_ptr<Sequence>,
               std::shared_ptr<const Dictionary>, std::shared_ptr<const Function>, Namespace*>
      data_;
};

// list, tuple, range; the view of a dictionary's keys, values or items; an iterator, which can be read once.
enum class SequenceKind { list, tuple, range, view, iterator };

struct Sequence {
  SequenceKind kind = SequenceKind::list;
  std::vector<Value> items;
  int levels = 1;
};

struct Dictionary {
  std::vector<std::pair<Value, Value>> entries;  // in the order of insertion
  std::unordered_map<std::string_view, std::size_t> by_text;
  int levels = 1;

  // nullptr if absent. Throws TemplateError for a list or a dictionary, which cannot be keys.
  const Value* find(const Value& key, Budget& budget) const;
  const Value* find(std::string_view key) const;
};

struct Namespace {
  std::vector<std::pair<std::string, Value>> values;
};

// Throw TemplateError if the value becomes too deep, or a key is a list or a dictionary.
Value make_sequence(std::vector<Value> items, SequenceKind kind, Budget& budget);
Value make_dictionary(std::vector<std::pair<Value, Value>> entries, Budget& budget);

// Python's name of the type, for messages.
std::string type_name(const Value& value);
bool is_true(const Value& value);
bool equal(const Value& a, const Value& b, Budget& budget);
// a < b: negative. Throws TemplateError for types without an order.
int compare(const Value& a, const Value& b, Budget& budget);
// What a loop over the value visits: items, keys, characters, nothing if undefined. Throws TemplateError for
// anything else. Uses up an iterator.
std::vector<Value> items_of(const Value& value, Budget& budget);
// Python's len(). Throws TemplateError for a value without one.
std::size_t length_of(const Value& value);

// Python's str() and repr(). Throw TemplateError for what has no fixed form, such as functions.
std::string to_text(const Value& value, Budget& budget);
std::string representation(const Value& value, Budget& budget);

}  // namespace sailor::jinja
