#include "planner/inputs/submit_options.h"

#include <fmt/format.h>

#include <charconv>

#include "planner/spec/error.h"
#include "planner/spec/text.h"

namespace sailor {
namespace {

std::string parse_file(const std::string& value, const std::string& option) {
  if (value.empty()) throw InputError(option + ": must name a file");
  return value;
}

// Whether it is the second of two words.
bool parse_second_of(const std::vector<std::string>& words, const std::string& value,
                     const std::string& option) {
  if (value != words[0] && value != words[1]) {
    throw InputError(fmt::format("{}: must be {}, is {}{}", option, alternatives(words), in_quotes(value),
                                 did_you_mean(value, words)));
  }
  return value == words[1];
}

// The expense that an option limits.
std::optional<Expense> limited_by(const std::string& option) {
  for (const Expense expense : kExpenses)
    if (option == limit_option(expense)) return expense;
  return std::nullopt;
}

}  // namespace

std::string limit_option(Expense expense) {
  return fmt::format("sailor-{}", kind_of(expense).option);
}

std::span<const OptionDefinition> option_definitions() {
  return sailor_options;
}

void add_environment_defaults(OptionValues& values, const char* (*get)(const char* name)) {
  for (const OptionDefinition& definition : option_definitions()) {
    const char* value = get(definition.environment);
    if (value == nullptr || *value == '\0' || values.count(definition.name) > 0) continue;
    if (definition.argument == nullptr) {
      if (std::string(value) == "0") continue;  // a switch that the environment turns off
      values[definition.name] = "";
    } else {
      values[definition.name] = value;
    }
  }
}

int parse_max_nodes(const std::string& text) {
  std::string last = text.substr(text.rfind('-') + 1);
  int count = 0;
  auto [end, error] = std::from_chars(last.data(), last.data() + last.size(), count);
  if (error != std::errc() || end != last.data() + last.size() || count < 1)
    throw InputError(fmt::format("--nodes: must be a number of nodes, is {}", in_quotes(text)));
  return count;
}

SubmitOptions parse_submit_options(const OptionValues& values) {
  SubmitOptions options;
  PlanOverrides& overrides = options.overrides;
  for (const auto& [name, value] : values) {
    std::string option = "--" + name;
    if (const std::optional<Expense> limit = limited_by(name)) {
      overrides.most[*limit] = parse_limit(*limit, value, option);
    } else if (name == "sailor-objective") {
      overrides.objective = parse_objective_option(value, option);
    } else if (name == "sailor-min-throughput") {
      overrides.min_iterations_per_s = parse_min_throughput(value, option);
    } else if (name == "sailor-max-gpus") {
      overrides.max_gpus = parse_max_gpus(value, option);
    } else if (name == "sailor-zones") {
      overrides.zones = parse_name_list(value, option);
    } else if (name == "sailor-partitions") {
      overrides.partitions = parse_name_list(value, option);
    } else if (name == "sailor-dry-run") {
      options.dry_run = true;
    } else if (name == "sailor-plan") {
      options.plan_file = parse_file(value, option);
    } else if (name == "sailor-job") {
      options.job_file = parse_file(value, option);
    } else if (name == "sailor-wait") {
      options.wait_for_nodes = parse_second_of({"plan", "nodes"}, value, option);
    } else if (name == "sailor-chain") {
      options.chain = parse_second_of({"no", "yes"}, value, option);
    } else if (name == "sailor-fresh") {
      options.fresh = true;
    } else if (name == "sailor-time-limit") {
      options.time_limit_s = parse_time_limit(value, option);
    } else if (name == "sailor-effort") {
      options.effort = parse_effort(value, option);
    } else {
      throw InputError(option + ": unknown option");
    }
  }
  return options;
}

}  // namespace sailor
