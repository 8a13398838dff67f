#include "trainer/data/tokenize/jinja/json_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "trainer/data/tokenize/jinja/python_text.h"

namespace sailor::jinja {
namespace {

class ValueBuilder : public nlohmann::json_sax<nlohmann::json> {
 public:
  Value take() { return std::move(root_); }

  bool null() override { return add({}); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(int64_t{value}); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > static_cast<uint64_t>(INT64_MAX)) fail_integer();
    return add(static_cast<int64_t>(value));
  }
  bool number_float(number_float_t value, const string_t& text) override {
    if (text.find_first_of(".eE") == std::string::npos) fail_integer();
    return add(double{value});
  }
  bool string(string_t& text) override { return add(std::move(text)); }
  bool binary(binary_t&) override { return false; }  // not in JSON text
  bool start_object(std::size_t) override { return open(); }
  bool start_array(std::size_t) override { return open(); }
  bool key(string_t& text) override {
    open_.back().keys.push_back(std::move(text));
    return true;
  }
  bool end_object() override {
    Level level = close();
    std::vector<std::pair<Value, Value>> entries;
    for (std::size_t i = 0; i < level.items.size(); ++i)
      entries.emplace_back(std::move(level.keys[i]), std::move(level.items[i]));
    return add(make_dictionary(std::move(entries), unlimited_));
  }
  bool end_array() override {
    return add(make_sequence(std::move(close().items), SequenceKind::list, unlimited_));
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    throw TemplateError(fmt::format("not valid JSON at byte {}", position));
  }

 private:
  struct Level {
    std::vector<Value> items;
    std::vector<std::string> keys;  // of an object
  };

  [[noreturn]] static void fail_integer() { throw TemplateError("an integer has more than 64 bits"); }
  bool open() {
    if (open_.size() >= static_cast<std::size_t>(kMostValueLevels))
      throw TemplateError(fmt::format("JSON is nested more than {} levels deep", kMostValueLevels));
    open_.emplace_back();
    return true;
  }
  Level close() {
    Level level = std::move(open_.back());
    open_.pop_back();
    return level;
  }
  bool add(Value value) {
    (open_.empty() ? root_ : open_.back().items.emplace_back()) = std::move(value);
    unlimited_ = {};  // the text bounds what is made
    return true;
  }

  Value root_;
  std::vector<Level> open_;
  Budget unlimited_;
};

void append_text(std::string_view text, bool ascii_only, std::string& json) {
  json += '"';
  for (std::size_t at = 0, begin = 0; at < text.size(); begin = at) {
    const char32_t c = next_code_point(text, at);
    static constexpr std::string_view kEscaped = "\"\\\n\r\t\f\b", kLetters = "\"\\nrtfb";
    const std::size_t letter = c < 0x80 ? kEscaped.find(static_cast<char>(c)) : std::string_view::npos;
    if (letter != std::string_view::npos)
      json.append(1, '\\').append(1, kLetters[letter]);
    else if (c >= 0x20 && (c < 0x7f || !ascii_only))
      json += text.substr(begin, at - begin);
    else if (c < 0x10000)
      json += fmt::format("\\u{:04x}", static_cast<uint32_t>(c));
    else
      json +=
          fmt::format("\\u{:04x}\\u{:04x}", 0xd800 + ((c - 0x10000) >> 10), 0xdc00 + ((c - 0x10000) & 0x3ff));
  }
  json += '"';
}

class JsonWriter {
 public:
  JsonWriter(const JsonForm& form, Budget& budget) : form_(form), budget_(budget) {}

  std::string write(const Value& value) {
    append(value, 1);
    return std::move(json_);
  }

 private:
  void append(const Value& value, int level);
  void append_entries(const Dictionary& dictionary, int level);
  void append_key(const Value& key);
  void line(int level) {
    if (!form_.indent) return;
    json_ += '\n';
    for (int i = 0; i < level; ++i) json_ += *form_.indent;
    budget_.charge(form_.indent->size() * static_cast<std::size_t>(level));
  }

  const JsonForm& form_;
  Budget& budget_;
  std::string json_;
};

void JsonWriter::append_key(const Value& key) {
  if (key.is_text())
    append_text(key.text(), form_.ascii_only, json_);
  else if (key.is_number() || key.is_none())
    append_text(key.is<bool>()  ? (key.boolean() ? "true" : "false")
                : key.is_none() ? "null"
                                : representation(key, budget_),
                form_.ascii_only, json_);
  else
    throw TemplateError("JSON has no keys that are a " + type_name(key));
}

void JsonWriter::append_entries(const Dictionary& dictionary, int level) {
  std::vector<const std::pair<Value, Value>*> entries;
  for (const auto& entry : dictionary.entries) entries.push_back(&entry);
  if (form_.sort_keys)
    std::stable_sort(entries.begin(), entries.end(), [this](const auto* a, const auto* b) {
      return compare(a->first, b->first, budget_) < 0;
    });
  json_ += '{';
  bool first = true;
  for (const auto* entry : entries) {
    if (!first) json_ += form_.between_items;
    line(level);
    append_key(entry->first);
    json_ += form_.after_key;
    append(entry->second, level + 1);
    first = false;
  }
  if (!first) line(level - 1);
  json_ += '}';
}

void JsonWriter::append(const Value& value, int level) {
  budget_.charge(kWorkPerValue + form_.between_items.size() + form_.after_key.size());
  if (value.is_text()) {
    budget_.charge(2 * value.text().size());
    append_text(value.text(), form_.ascii_only, json_);
  } else if (value.is_none()) {
    json_ += "null";
  } else if (value.is<bool>()) {
    json_ += value.boolean() ? "true" : "false";
  } else if (value.is<double>() && !(value.number() - value.number() == 0)) {
    json_ += value.number() > 0 ? "Infinity" : value.number() < 0 ? "-Infinity" : "NaN";
  } else if (value.is_number()) {
    json_ += representation(value, budget_);
  } else if (const Dictionary* dictionary = value.dictionary()) {
    append_entries(*dictionary, level);
  } else if (value.sequence() && (value.sequence()->kind == SequenceKind::list ||
                                  value.sequence()->kind == SequenceKind::tuple)) {
    json_ += '[';
    bool first = true;
    for (const Value& item : value.sequence()->items) {
      if (!first) json_ += form_.between_items;
      line(level);
      append(item, level + 1);
      first = false;
    }
    if (!first) line(level - 1);
    json_ += ']';
  } else {
    throw TemplateError("JSON has no " + type_name(value));
  }
}

}  // namespace

Value parse_json_value(std::string_view json) {
  ValueBuilder builder;
  nlohmann::json::sax_parse(json, &builder);
  return builder.take();
}

std::string to_json(const Value& value, const JsonForm& form, Budget& budget) {
  return JsonWriter(form, budget).write(value);
}

}  // namespace sailor::jinja
