#include "planner/spec/yaml_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

namespace sailor {

std::string yaml_text(const std::string& text) {
  static const std::set<std::string> kWords = {"null", "true", "false", "yes", "no", "on", "off", "n", "y"};
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  bool plain = !text.empty() && text.size() < 200 && std::isalpha(static_cast<unsigned char>(text[0])) &&
               !kWords.contains(lower) && std::all_of(text.begin(), text.end(), [](unsigned char c) {
                 return std::isalnum(c) || c == '_' || c == '-' || c == '.' || c == '/';
               });
  if (plain) return text;
  std::string out = "\"";
  for (unsigned char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c < 0x20 || c == 0x7f) {
      out += fmt::format("\\x{:02x}", c);
    } else {
      out += static_cast<char>(c);
    }
  }
  return out + "\"";
}

std::string yaml_list(const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& text : texts) out += (out.empty() ? "" : ", ") + yaml_text(text);
  return "[" + out + "]";
}

std::string yaml_table(const char* key, const std::map<std::string, std::map<std::string, double>>& table) {
  std::string out;
  for (const auto& [outer, row] : table) {
    std::string cells;
    for (const auto& [inner, price] : row) {
      cells += fmt::format("{}{}: {}", cells.empty() ? "" : ", ", yaml_text(inner), price);
    }
    if (!cells.empty()) out += fmt::format("  {}: {{{}}}\n", yaml_text(outer), cells);
  }
  return out.empty() ? out : fmt::format("{}:\n{}", key, out);
}

}  // namespace sailor
