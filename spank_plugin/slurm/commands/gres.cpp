#include "spank_plugin/slurm/commands/gres.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace sailor {
namespace {

constexpr int kMaxIndex = 4096;

std::optional<int> parse_count(const std::string& text) {
  int value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0 || value > kMostGres)
    return std::nullopt;
  return value;
}

// Splits at `separator` where no parenthesis or bracket is open.
std::vector<std::string> split_outside_brackets(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (char c : text) {
    if (c == '(' || c == '[') ++depth;
    if ((c == ')' || c == ']') && depth > 0) --depth;
    if (c == separator && depth == 0) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

// The value of `key` in `(S:0-1)(IDX:0,2)`; empty when absent.
std::string annotation(const std::string& text, const std::string& key) {
  size_t begin = text.find("(" + key + ":");
  if (begin == std::string::npos) return "";
  begin += key.size() + 2;
  size_t end = text.find(')', begin);
  return text.substr(begin, end == std::string::npos ? std::string::npos : end - begin);
}

}  // namespace

std::vector<int> parse_index_ranges(const std::string& text) {
  std::vector<int> indices;
  for (const std::string& part : split_outside_brackets(text, ',')) {
    size_t dash = part.find('-');
    std::optional<int> first = parse_count(part.substr(0, dash));
    std::optional<int> last = dash == std::string::npos ? first : parse_count(part.substr(dash + 1));
    if (!first || !last || *last > kMaxIndex) continue;
    for (int i = *first; i <= *last; ++i) indices.push_back(i);
  }
  std::sort(indices.begin(), indices.end());
  indices.erase(std::unique(indices.begin(), indices.end()), indices.end());
  return indices;
}

std::vector<Gres> parse_gres(const std::string& text) {
  std::vector<Gres> result;
  for (const std::string& entry : split_outside_brackets(text, ',')) {
    std::vector<std::string> fields = split_outside_brackets(entry, ':');
    fields.back().resize(std::min(fields.back().size(), fields.back().find('(')));  // annotations
    if (fields.size() < 2 || fields.size() > 3 || fields[0].empty()) continue;
    std::optional<int> count = parse_count(fields.back());
    if (!count) continue;
    Gres gres;
    gres.name = fields[0];
    if (fields.size() == 3 && fields[1] != "(null)") gres.type = fields[1];
    gres.count = *count;
    gres.indices = parse_index_ranges(annotation(entry, "IDX"));
    result.push_back(std::move(gres));
  }
  return result;
}

}  // namespace sailor
