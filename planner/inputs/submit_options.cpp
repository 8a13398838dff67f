#include "planner/inputs/submit_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <ctime>

#include "planner/spec/error.h"
#include "planner/spec/quantity.h"
#include "planner/spec/text.h"

namespace sailor {
namespace {

std::string parse_file(const std::string& value, const std::string& option) {
  if (value.empty()) throw InputError(option + ": must name a file");
  return value;
}

void parse_wait(const std::string& value, const std::string& option, SubmitOptions& options) {
  const std::vector<std::string> words = {"auto", "none", "plan", "nodes"};
  options.wait_for_nodes = value == "nodes";
  options.choose_start = value != "plan" && value != "nodes";
  if (value == "none") options.most_wait_s = 0;
  if (std::find(words.begin(), words.end(), value) != words.end()) return;
  options.most_wait_s = parse_duration(value);
  if (!options.most_wait_s || *options.most_wait_s < 0)
    throw InputError(fmt::format("{}: must be {} or a duration (30min), is {}{}", option,
                                 fmt::join(words, ", "), in_quotes(value), did_you_mean(value, words)));
}

// A time in this format at the beginning of `text`, which loses it; fills in fields of `time`.
bool take_time(std::string_view& text, const char* format, std::tm& time) {
  const std::string copy(text);
  std::tm read = time;  // of a time in another format some fields are read
  const char* end = strptime(copy.c_str(), format, &read);
  if (end == nullptr) return false;
  text.remove_prefix(static_cast<size_t>(end - copy.c_str()));
  time = read;
  return true;
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

int64_t parse_deadline(const std::string& text, int64_t now_s) {
  constexpr std::string_view kNow = "now+";
  const auto fail = [&](const char* what) -> int64_t {
    throw InputError(
        fmt::format("--sailor-deadline: {}: {} (14:30, 2026-03-01T14:30, now+12h)", what, in_quotes(text)));
  };
  std::string_view rest = text;
  if (rest.starts_with(kNow)) {
    const std::optional<double> after_s = parse_duration(rest.substr(kNow.size()));
    if (!after_s) return fail("not a duration");
    constexpr double kCentury_s = 100 * 365.25 * 86400;
    if (*after_s <= 0) return fail("is in the past");
    return *after_s <= kCentury_s ? now_s + static_cast<int64_t>(*after_s) : fail("more than a century away");
  }
  const std::time_t now = now_s;
  std::tm time{};
  localtime_r(&now, &time);
  time.tm_sec = time.tm_min = time.tm_hour = 0;
  const bool dated = take_time(rest, "%Y-%m-%d", time);
  if (dated && rest.starts_with('T')) rest.remove_prefix(1);
  if (!(dated && rest.empty())) {
    if (!take_time(rest, "%H:%M", time)) return fail("not a time");
    take_time(rest, ":%S", time);
  }
  if (!rest.empty()) return fail("not a time");
  time.tm_isdst = -1;
  int64_t at_s = std::mktime(&time);
  if (!dated && at_s <= now_s) {
    ++time.tm_mday;
    time.tm_isdst = -1;
    at_s = std::mktime(&time);
  }
  return at_s > now_s ? at_s : fail("is in the past");
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
      parse_wait(value, option, options);
    } else if (name == "sailor-deadline") {
      parse_deadline(value, std::time(nullptr));
      options.deadline = value;
    } else if (name == "sailor-pin") {
      options.pin = true;
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
