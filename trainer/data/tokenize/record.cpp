#include "trainer/data/tokenize/record.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <vector>

namespace sailor {

namespace {

using Json = nlohmann::json;

// `hint` is what to do when the record lacks the key.
std::string text_under(const Json& record, const std::string& key, const std::string& hint,
                       const Where& where) {
  const auto found = record.find(key);
  if (found == record.end()) {
    constexpr std::size_t kMostShown = 10;
    std::vector<std::string> keys;
    for (const auto& [name, value] : record.items()) {
      if (keys.size() < kMostShown) keys.push_back(name);
    }
    throw InputError(where,
                     fmt::format("has no key \"{}\" (keys: {}); {}", key, fmt::join(keys, ", "), hint));
  }
  if (!found->is_string())
    throw InputError(where, fmt::format("\"{}\" must be a text, is {}", key, found->type_name()));
  return found->get<std::string>();
}

}  // namespace

Json parse_value(std::string_view text, const std::string& hint, const Where& where) {
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    throw InputError(where, fmt::format("not valid JSON at byte {}{}", error.byte, hint));
  } catch (const Json::out_of_range&) {
    throw InputError(where, "a number is too large");
  }
}

Json parse_record(std::string_view line, const std::string& form, const Where& where) {
  Json record = parse_value(line, "; every line must be an object such as " + form, where);
  if (!record.is_object()) throw InputError(where, "must be an object such as " + form);
  return record;
}

std::string text_form(const std::string& key) {
  return fmt::format("{{\"{}\": \"a document\"}}", key);
}

std::string text_of_record(const Json& record, const std::string& key, const Where& where) {
  return text_under(record, key, "name the key of the text with --text-key", where);
}

std::string example_form() {
  return "{\"prompt\": \"a question\", \"completion\": \"its answer\"}";
}

Example example_of_record(const Json& record, const Where& where) {
  const std::string hint = "examples are objects such as " + example_form();
  if (record.contains("messages"))
    throw InputError(
        where,
        "has messages, which need a chat template: that of the tokenizer.json named with --model, "
        "or --chat-template FILE");
  Example example{text_under(record, "prompt", hint, where), text_under(record, "completion", hint, where)};
  if (example.completion.empty())
    throw InputError(where, "\"completion\" is empty: there is nothing to learn");
  return example;
}

}  // namespace sailor
