#include "planner/spec/job_schema.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "planner/spec/job_schema_text.h"  // made by CMake from etc/doc/job.schema.json

namespace sailor {
namespace {

using SchemaNode = nlohmann::ordered_json;

// The values of a key: the words of an enumeration, else its types and limits.
std::string value_column(const SchemaNode& node) {
  if (node.contains("enum")) {
    std::vector<std::string> words;
    for (const SchemaNode& word : node["enum"]) words.push_back("`" + word.get<std::string>() + "`");
    return fmt::format("{}", fmt::join(words, ", "));
  }
  std::vector<std::string> types;
  const auto add_types = [&](const SchemaNode& from) {
    if (!from.contains("type")) return;
    if (from["type"].is_string()) {
      types.push_back(from["type"]);
    } else {
      for (const SchemaNode& type : from["type"]) types.push_back(type);
    }
  };
  add_types(node);
  if (node.contains("anyOf"))
    for (const SchemaNode& one : node["anyOf"]) add_types(one);
  if (node.contains("format")) return node["format"];
  std::string text = fmt::format("{}", fmt::join(types, " or "));
  const auto limit = [&](const char* key, const char* words) {
    if (node.contains(key)) text += fmt::format(", {} {}", words, node[key].dump());
  };
  limit("minimum", "at least");
  limit("exclusiveMinimum", "above");
  limit("maximum", "at most");
  limit("exclusiveMaximum", "below");
  return text;
}

std::string default_column(const SchemaNode& node) {
  if (!node.contains("default")) return "";
  const SchemaNode& value = node["default"];
  return value.is_string() ? value.get<std::string>() : value.dump();
}

// A `|` would begin another column.
std::string in_cell(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c;
  }
  return out;
}

bool is_required(const SchemaNode& map, const std::string& key) {
  const auto names = [&](const SchemaNode& node) {
    return node.contains("required") &&
           std::find(node["required"].begin(), node["required"].end(), key) != node["required"].end();
  };
  // Of alternatives the first is the usual one.
  return names(map) || (map.contains("oneOf") && names(map["oneOf"][0]));
}

void add_rows(const SchemaNode& map, const std::string& path, std::string& out) {
  for (const auto& [key, node] : map["properties"].items()) {
    const std::string name = path + key;
    out += fmt::format("| `{}{}` | {} | {} | {} |\n", name, is_required(map, key) ? "" : "?",
                       in_cell(value_column(node)), in_cell(default_column(node)),
                       in_cell(node["description"].get<std::string>()));
    if (node.contains("properties")) add_rows(node, name + ".", out);
  }
}

}  // namespace

const char* job_schema_json() {
  return kJobSchemaText;
}

std::string job_schema_markdown() {
  std::string out = "| Key | Value | Default | Meaning |\n|---|---|---|---|\n";
  add_rows(SchemaNode::parse(kJobSchemaText), "", out);
  return out;
}

}  // namespace sailor
