#include "planner/spec/parameter_groups.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "planner/spec/lora_parameters.h"
#include "planner/spec/model_family.h"
#include "planner/spec/text.h"

namespace sailor {
namespace {

// A model that no family can store has no names in directories: the trainer's own are used.
std::set<std::string> names_of(const ParameterSpec& parameter) {
  std::set<std::string> names;
  for (const StoredPiece& piece : parameter.stored.pieces)
    names.insert(piece.tensor.empty() ? parameter.name : piece.tensor);
  return names;
}

bool matches(const ParameterGroup& group, const std::string& name) {
  return fnmatch(group.match.c_str(), name.c_str(), 0) == 0;
}

const ParameterGroup* group_of(const std::vector<ParameterGroup>& groups, const std::string& name) {
  const auto found = std::find_if(groups.begin(), groups.end(),
                                  [&](const ParameterGroup& group) { return matches(group, name); });
  return found == groups.end() ? nullptr : &*found;
}

bool equal_settings(const ParameterGroup* a, const ParameterGroup* b) {
  if (!a || !b) return a == b;
  return a->lr_scale == b->lr_scale && a->weight_decay == b->weight_decay;
}

// Patterns that match parameters like `name`: with `*` for numbers, and with `*` for the first words.
void add_likely_patterns(const std::string& name, std::set<std::string>& patterns) {
  std::string whole;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('.', begin), name.size());
    const std::string word = name.substr(begin, end - begin);
    const bool number =
        std::all_of(word.begin(), word.end(), [](unsigned char c) { return std::isdigit(c); });
    whole += (whole.empty() ? "" : ".") + (number ? "*" : word);
    begin = end + 1;
  }
  for (std::size_t dot = whole.find('.'); dot != std::string::npos; dot = whole.find('.', dot + 1))
    patterns.insert("*" + whole.substr(dot));
  patterns.insert(std::move(whole));
}

std::string matches_nothing(const std::string& pattern, const std::set<std::string>& names) {
  std::set<std::string> likely;
  for (const std::string& name : names) add_likely_patterns(name, likely);
  const std::string near = did_you_mean(pattern, {likely.begin(), likely.end()});
  return fmt::format("{} matches no parameter that is trained{}", in_quotes(pattern),
                     near.empty() ? fmt::format("; their names are those of model directories, such as {}",
                                                in_quotes(*names.begin()))
                                  : near);
}

std::string splits_a_matrix(const std::string& one, const std::string& other) {
  return fmt::format("applies to {} and not to {}, but the trainer keeps both in one tensor; match both",
                     in_quotes(one), in_quotes(other));
}

}  // namespace

std::optional<GroupProblem> find_problem(const std::vector<ParameterGroup>& groups, const ModelSpec& model,
                                         const std::optional<LoraSpec>& lora) {
  if (groups.empty() || find_family(model.family) == nullptr) return std::nullopt;
  std::set<std::string> all;
  std::set<const ParameterGroup*> used;
  const auto index = [&](const ParameterGroup* group) {
    return static_cast<std::size_t>(group - groups.data());
  };
  for (const ParameterSpec& parameter : trained_parameters(model, lora, model.vocabulary)) {
    const std::set<std::string> names = names_of(parameter);
    const ParameterGroup* const first = group_of(groups, *names.begin());
    for (const std::string& name : names) {
      const ParameterGroup* const group = group_of(groups, name);
      if (!equal_settings(group, first))
        return first ? GroupProblem{index(first), splits_a_matrix(*names.begin(), name)}
                     : GroupProblem{index(group), splits_a_matrix(name, *names.begin())};
      if (group) used.insert(group);
    }
    all.insert(names.begin(), names.end());
  }
  for (const ParameterGroup& group : groups) {
    if (used.contains(&group)) continue;
    const bool shadowed =
        std::any_of(all.begin(), all.end(), [&](const std::string& name) { return matches(group, name); });
    return GroupProblem{index(&group), shadowed
                                           ? in_quotes(group.match) +
                                                 " matches only parameters of groups before it, of which "
                                                 "the first applies; move it up, or remove it"
                                           : matches_nothing(group.match, all)};
  }
  return std::nullopt;
}

std::map<std::string, ParameterGroup> groups_by_parameter(const std::vector<ParameterGroup>& groups,
                                                          const ModelSpec& model,
                                                          const std::optional<LoraSpec>& lora) {
  std::map<std::string, ParameterGroup> of;
  if (groups.empty()) return of;
  for (const ParameterSpec& parameter : trained_parameters(model, lora, model.vocabulary)) {
    if (const ParameterGroup* group = group_of(groups, *names_of(parameter).begin()))
      of.emplace(parameter.name, *group);
  }
  return of;
}

}  // namespace sailor
