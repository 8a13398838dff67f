// Files that a running program may be writing: what is whole is read, the rest is left out. Internal to
// planner/history.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace sailor {

using Json = nlohmann::ordered_json;

// The whole lines of a file of JSON, as far as they are objects; nothing when there is no such file.
std::vector<Json> json_lines(const std::string& path);
// A member of an object; nothing (empty) when it is not there or something else.
std::optional<double> number_in(const Json& json, const char* key);
std::string word_in(const Json& json, const char* key);

}  // namespace sailor
