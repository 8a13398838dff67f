#include "trainer/data/tokenize/json_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <vector>

namespace sailor {

std::string text_of_json_line(std::string_view line, const std::string& key, const Where& where) {
  using Json = nlohmann::json;
  Json object;
  try {
    object = Json::parse(line);
  } catch (const Json::parse_error& error) {
    throw InputError(where,
                     fmt::format("not valid JSON at byte {}; every line must be an object such as {{\"{}\": "
                                 "\"a document\"}}",
                                 error.byte, key));
  }
  if (!object.is_object())
    throw InputError(where, fmt::format("must be an object such as {{\"{}\": \"a document\"}}", key));
  const auto found = object.find(key);
  if (found == object.end()) {
    constexpr std::size_t kMostShown = 10;
    std::vector<std::string> keys;
    for (const auto& [name, value] : object.items()) {
      if (keys.size() < kMostShown) keys.push_back(name);
    }
    throw InputError(
        where, fmt::format("has no key \"{}\" (keys: {}); name the key of the text with --text-key", key,
                           fmt::join(keys, ", ")));
  }
  if (!found->is_string())
    throw InputError(where, fmt::format("\"{}\" must be a text, is {}", key, found->type_name()));
  return found->get<std::string>();
}

}  // namespace sailor
