// What `sailor doctor` says about one thing: how it is, and what to do when it is not well. Value type.
#pragma once

#include <string>
#include <vector>

namespace sailor {

struct Finding {
  enum class Level { ok, note, warning, problem };
  Level level = Level::ok;
  std::string about;   // one word: slurm, plugin, catalog, ...
  std::string text;    // how it is
  std::string remedy;  // what to do; empty when it is well
};

using Findings = std::vector<Finding>;

inline Finding well(std::string about, std::string text) {
  return {Finding::Level::ok, std::move(about), std::move(text), ""};
}
// Well for some nodes, not for others: the reader knows.
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
// For another doctor: a line per finding, fields separated by tabs; and back. What is no such line is left
// out.
std::string to_lines(const Findings& findings);
Findings parse_lines(const std::string& lines);

}  // namespace sailor
