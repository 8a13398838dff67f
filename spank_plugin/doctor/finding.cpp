#include "spank_plugin/doctor/finding.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>

namespace sailor {
namespace {

constexpr std::array<const char*, 4> kLevels = {"ok", "note", "warning", "problem"};

std::string without_breaks(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\t' || c == '\n'; }, ' ');
  return text;
}

}  // namespace

bool has_problems(const Findings& findings) {
  return std::any_of(findings.begin(), findings.end(),
                     [](const Finding& f) { return f.level == Finding::Level::problem; });
}

std::string to_text(const Findings& findings) {
  std::string text;
  for (const Finding& f : findings) {
    text += fmt::format("{:<8} {:<10} {}\n", kLevels[static_cast<size_t>(f.level)], f.about, f.text);
    if (!f.remedy.empty()) text += fmt::format("{:<8} {:<10} -> {}\n", "", "", f.remedy);
  }
  return text;
}

std::string to_lines(const Findings& findings) {
  std::string lines;
  for (const Finding& f : findings)
    lines += fmt::format("{}\t{}\t{}\t{}\n", kLevels[static_cast<size_t>(f.level)], without_breaks(f.about),
                         without_breaks(f.text), without_breaks(f.remedy));
  return lines;
}

Findings parse_lines(const std::string& lines) {
  Findings findings;
  std::istringstream stream(lines);
  for (std::string line; std::getline(stream, line);) {
    std::vector<std::string> fields(1);
    for (const char c : line) {
      if (c == '\t') {
        fields.emplace_back();
      } else {
        fields.back() += c;
      }
    }
    const auto level = std::find(kLevels.begin(), kLevels.end(), fields[0]);
    if (fields.size() != 4 || level == kLevels.end()) continue;
    findings.push_back(
        {static_cast<Finding::Level>(level - kLevels.begin()), fields[1], fields[2], fields[3]});
  }
  return findings;
}

}  // namespace sailor
