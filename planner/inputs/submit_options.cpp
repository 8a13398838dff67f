#include "planner/inputs/submit_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "planner/spec/error.h"
#include "planner/spec/text.h"

namespace sailor {
namespace {

std::string parse_file(const std::string& value, const std::string& option) {
  if (value.empty()) throw InputError(option + ": must name a file");
  return value;
}

bool parse_wait(const std::string& value, const std::string& option) {
  const std::vector<std::string> words = {"plan", "nodes"};
  if (value != words[0] && value != words[1]) {
    throw InputError(fmt::format("{}: must be {}, is {}{}", option, alternatives(words), in_quotes(value),
                                 did_you_mean(value, words)));
  }
  return value == words[1];
}

struct LimitOption {
  explicit LimitOption(Expense expense)
      : expense(expense),
        name(limit_option(expense)),
        help(fmt::format("[sailor] maximum {} per iteration", kind_of(expense).unit)),
        environment(name) {
    for (char& c : environment) c = c == '-' ? '_' : static_cast<char>(std::toupper(c));
  }

  Expense expense;
  std::string name, help, environment;
};

const std::vector<LimitOption>& limit_options() {
  static const std::vector<LimitOption> options(kExpenses.begin(), kExpenses.end());
  return options;
}

std::vector<OptionDefinition> make_definitions() {
  static const std::string objective =
      fmt::format("[sailor] plan the job for this objective: {}", alternatives(objective_names()));
  std::vector<OptionDefinition> definitions = {
      {"sailor-objective", "NAME", objective.c_str(), "SAILOR_OBJECTIVE"},
      {"sailor-min-throughput", "RATE", "[sailor] fewest iterations per second", "SAILOR_MIN_THROUGHPUT"},
      {"sailor-max-gpus", "TYPE=N,...", "[sailor] most GPUs of each type; TYPE@ZONE=N: in that zone",
       "SAILOR_MAX_GPUS"},
      {"sailor-zones", "ZONE,...", "[sailor] use only these zones", "SAILOR_ZONES"},
      {"sailor-partitions", "NAME,...", "[sailor] use only these partitions (as -p)", "SAILOR_PARTITIONS"},
      {"sailor-dry-run", nullptr, "[sailor] print the plan and the sbatch command, submit nothing",
       "SAILOR_DRY_RUN"},
      {"sailor-plan", "FILE", "[sailor] use this plan instead of searching for one", "SAILOR_PLAN"},
      {"sailor-job", "FILE", "[sailor] the job spec, when the script is not one", "SAILOR_JOB"},
      {"sailor-wait", "plan|nodes",
       "[sailor] plan: only nodes free now; nodes: also busy ones, queue for them", "SAILOR_WAIT"},
      {"sailor-time-limit", "SECONDS", "[sailor] time limit of the planner", "SAILOR_TIME_LIMIT"},
      {"sailor-effort", "FACTOR", "[sailor] factor on the search effort", "SAILOR_EFFORT"},
  };
  for (const LimitOption& limit : limit_options())
    definitions.insert(definitions.begin() + 1, {limit.name.c_str(), kind_of(limit.expense).unit,
                                                 limit.help.c_str(), limit.environment.c_str()});
  return definitions;
}

}  // namespace

std::string limit_option(Expense expense) {
  return fmt::format("sailor-{}", kind_of(expense).option);
}

const std::vector<OptionDefinition>& option_definitions() {
  static const std::vector<OptionDefinition> definitions = make_definitions();
  return definitions;
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
    const auto limit = std::find_if(limit_options().begin(), limit_options().end(),
                                    [&](const LimitOption& of) { return of.name == name; });
    if (limit != limit_options().end()) {
      overrides.most[limit->expense] = parse_limit(limit->expense, value, option);
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
      options.wait_for_nodes = parse_wait(value, option);
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
