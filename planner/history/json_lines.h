// Reads files that a running program may be writing: complete lines only. Internal to planner/history.
#pragma once

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

}  // namespace sailor
