#include "planner/cli/output.h"

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "planner/spec/text.h"
#include "planner/spec/text_file.h"

namespace sailor::cli {
namespace {

using Json = nlohmann::ordered_json;

bool is_flat(const Json& json) {
  if (!json.is_structured() || json.empty()) return true;
  if (json.is_object()) return false;
  for (const Json& item : json) {
    if (item.is_structured()) return false;
  }
  return true;
}

// Scalars and lists of scalars as JSON, which is YAML too; everything else one entry per line.
void emit(const Json& json, int indent, std::string& out) {
  std::string margin(static_cast<size_t>(indent), ' ');
  if (is_flat(json)) {
    out += margin + json.dump() + "\n";
  } else if (json.is_object()) {
    for (const auto& [key, value] : json.items()) {
      bool plain = key.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-") ==
                   std::string::npos;
      out += margin + (plain && !key.empty() && key[0] != '-' ? key : Json(key).dump()) + ":";
      if (is_flat(value)) {
        out += " " + value.dump() + "\n";
      } else {
        out += "\n";
        emit(value, indent + 2, out);
      }
    }
  } else {
    for (const Json& item : json) {
      std::string inner;
      emit(item, indent + 2, inner);
      inner[static_cast<size_t>(indent)] = '-';
      out += inner;
    }
  }
}

}  // namespace

void print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    throw std::runtime_error("cannot write to standard output");
  }
}

void diagnose(std::string_view text) {
  fmt::print(stderr, "sailor: {}\n", one_line(text));
}

std::string json_to_yaml(const std::string& json) {
  std::string out;
  emit(Json::parse(json), 0, out);
  return out;
}

bool print_data(Format format, const std::string& file, const std::string& json) {
  if (!file.empty()) write_file_atomically(file, json);
  if (format == Format::json) print(json);
  if (format == Format::yaml) print(json_to_yaml(json));
  return format == Format::json || format == Format::yaml;
}

}  // namespace sailor::cli
