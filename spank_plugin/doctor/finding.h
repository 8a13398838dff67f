// A finding of `sailor doctor`: the state of one thing, and how to fix it. Value type.
#pragma once

#include <string>
#include <vector>

namespace sailor {

struct Finding {
  enum class Level { ok, note, warning, problem };
  Level level = Level::ok;
  std::string about;   // one word: slurm, plugin, catalog, ...
  std::string text;    // the state
  std::string remedy;  // how to fix it; empty if there is no problem
};

using Findings = std::vector<Finding>;

inline Finding well(std::string about, std::string text) {
  return {Finding::Level::ok, std::move(about), std::move(text), ""};
}
// A problem on some nodes and normal on others, such as login nodes.
inline Finding note(std::string about, std::string text, std::string remedy) {
  return {Finding::Level::note, std::move(about), std::move(text), std::move(remedy)};
}
inline Finding warning(std::string about, std::string text, std::string remedy) {
  return {Finding::Level::warning, std::move(about), std::move(text), std::move(remedy)};
}
inline Finding problem(std::string about, std::string text, std::string remedy) {
  return {Finding::Level::problem, std::move(about), std::move(text), std::move(remedy)};
}

bool has_problems(const Findings& findings);
// For people: a line per finding, and one with the remedy below those that have one.
std::string to_text(const Findings& findings);
// For another doctor: a line per finding, tab-separated; and back. Other lines are ignored.
std::string to_lines(const Findings& findings);
Findings parse_lines(const std::string& lines);

}  // namespace sailor
