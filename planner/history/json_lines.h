// Reads files that a running program may be writing: complete lines only. Internal to planner/history.
#pragma once

#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace sailor {

using Json = nlohmann::ordered_json;

// The complete lines of a file that are JSON objects; nothing if there is no such file.
std::vector<Json> json_lines(const std::string& path);
// A member of an object; nothing (empty) if it is missing or of another type.
std::optional<double> number_in(const Json& json, const char* key);
std::string word_in(const Json& json, const char* key);
// A member as a whole number; 0 if it is missing, of another type, or beyond what the type holds.
template <class Integer>
Integer integer_in(const Json& json, const char* key) {
  using Limits = std::numeric_limits<Integer>;
  const double number = number_in(json, key).value_or(0);
  const bool fits =
      number > static_cast<double>(Limits::min()) && number < static_cast<double>(Limits::max());
  return fits ? static_cast<Integer>(number) : 0;
}

}  // namespace sailor
