#include "planner/spec/overrides.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "planner/spec/error.h"
#include "planner/spec/quantity.h"
#include "planner/spec/text.h"

namespace sailor {
namespace {

[[noreturn]] void fail(const std::string& option, const std::string& what) {
  throw InputError(option + ": " + what);
}

std::vector<std::string> split_commas(const std::string& text, const std::string& option) {
  std::vector<std::string> items;
  for (size_t begin = 0; begin <= text.size();) {
    size_t end = std::min(text.find(',', begin), text.size());
    items.push_back(text.substr(begin, end - begin));
    if (items.back().empty()) fail(option, "an item between the commas of " + in_quotes(text) + " is empty");
    begin = end + 1;
  }
  return items;
}

double positive(std::optional<double> value, const std::string& text, const std::string& option,
                const char* expected) {
  if (!value || !(*value > 0)) fail(option, std::string("must be ") + expected + ", is " + in_quotes(text));
  return *value;
}

}  // namespace

Objective parse_objective_option(const std::string& text, const std::string& option) {
  const std::vector<std::string>& names = objective_names();
  auto it = std::find(names.begin(), names.end(), text);
  if (it == names.end()) {
    fail(option, "must be " + alternatives(names) + ", is " + in_quotes(text) + did_you_mean(text, names));
  }
  return objective_at(static_cast<size_t>(it - names.begin()));
}

double parse_limit(Expense expense, const std::string& text, const std::string& option) {
  return positive(kind_of(expense).parse(text), text, option, kind_of(expense).expected);
}

double parse_min_throughput(const std::string& text, const std::string& option) {
  return positive(parse_number(text), text, option, "a number of iterations per second above 0");
}

double parse_time_limit(const std::string& text, const std::string& option) {
  return positive(parse_duration(text), text, option, "a duration above 0, such as 2s");
}

double parse_effort(const std::string& text, const std::string& option) {
  const double effort = positive(parse_number(text), text, option, "a number above 0, such as 10");
  if (effort > kMostEffort)
    fail(option, fmt::format("must be at most {:g}, is {}", kMostEffort, in_quotes(text)));
  return effort;
}

std::map<std::string, int> parse_max_gpus(const std::string& text, const std::string& option) {
  std::map<std::string, int> limits;
  for (const std::string& item : split_commas(text, option)) {
    size_t equals = item.rfind('=');
    int count = 0;
    const size_t at = item.rfind('@', equals);
    const bool in_zone = at != std::string::npos;
    bool good = equals != std::string::npos && equals > 0 && at != 0 && at + 1 != equals &&
                !(in_zone && item.substr(0, at) == kTotalGpus);
    if (good) {
      const char* begin = item.data() + equals + 1;
      const char* end = item.data() + item.size();
      auto [stop, error] = std::from_chars(begin, end, count);
      good = error == std::errc() && stop == end && count >= 0 && begin != end;
    }
    if (!good) fail(option, "must be TYPE=N, TYPE@ZONE=N or total=N,..., is " + in_quotes(item));
    if (!limits.emplace(item.substr(0, equals), count).second) {
      fail(option, in_quotes(item.substr(0, equals)) + " is listed twice");
    }
  }
  return limits;
}

std::string max_gpus_text(const std::map<std::string, int>& limits) {
  std::string out;
  for (const auto& [name, most] : limits) out += fmt::format("{}{}={}", out.empty() ? "" : ",", name, most);
  return out;
}

std::vector<std::string> parse_name_list(const std::string& text, const std::string& option) {
  return split_commas(text, option);
}

void apply(const PlanOverrides& overrides, JobSpec& job) {
  if (overrides.objective) {
    job.objective = *overrides.objective;
    job.objective_given = true;
  }
  for (const Expense expense : kExpenses)
    if (overrides.most[expense]) job.constraints.most[expense] = overrides.most[expense];
  if (overrides.min_iterations_per_s) job.constraints.min_iterations_per_s = overrides.min_iterations_per_s;
  for (const auto& [name, limit] : overrides.max_gpus) {
    const size_t at = name.rfind('@');
    if (at == std::string::npos) {
      job.resources.max_gpus[name] = limit;
    } else {
      job.resources.max_gpus_in_zone[name.substr(0, at)][name.substr(at + 1)] = limit;
    }
  }
  if (!overrides.zones.empty()) job.resources.zones = overrides.zones;
  if (!overrides.partitions.empty()) job.resources.partitions = overrides.partitions;
}

}  // namespace sailor
