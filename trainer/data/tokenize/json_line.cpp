#include "trainer/data/tokenize/json_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <vector>

namespace sailor {

namespace {

using Json = nlohmann::json;

// `form` is what a line should look like, `hint` what to do when it lacks the key.
Json object_of(std::string_view line, const std::string& form, const Where& where) {
  Json object;
  try {
    object = Json::parse(line);
  } catch (const Json::parse_error& error) {
    throw InputError(where, fmt::format("not valid JSON at byte {}; every line must be an object such as {}",
                                        error.byte, form));
  }
  if (!object.is_object()) throw InputError(where, "must be an object such as " + form);
  return object;
}

std::string text_under(const Json& object, const std::string& key, const std::string& hint,
                       const Where& where) {
  const auto found = object.find(key);
  if (found == object.end()) {
    constexpr std::size_t kMostShown = 10;
    std::vector<std::string> keys;
    for (const auto& [name, value] : object.items()) {
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

std::string text_of_json_line(std::string_view line, const std::string& key, const Where& where) {
  return text_under(object_of(line, fmt::format("{{\"{}\": \"a document\"}}", key), where), key,
                    "name the key of the text with --text-key", where);
}

Example example_of_json_line(std::string_view line, const Where& where) {
  const std::string form = "{\"prompt\": \"a question\", \"completion\": \"its answer\"}";
  const Json object = object_of(line, form, where);
  const std::string hint = object.contains("messages")
                               ? "apply the tokenizer's chat template (apply_chat_template() of "
                                 "transformers) to the messages first"
                               : "examples are objects such as " + form;
  Example example{text_under(object, "prompt", hint, where), text_under(object, "completion", hint, where)};
  if (example.completion.empty())
    throw InputError(where, "\"completion\" is empty: there is nothing to learn");
  return example;
}

}  // namespace sailor
