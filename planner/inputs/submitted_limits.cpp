#include "planner/inputs/submitted_limits.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "planner/spec/error.h"
#include "planner/spec/name_list.h"

namespace sailor {
namespace {

const std::vector<std::string>& plan_limits() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out = {"sailor-objective", "sailor-min-throughput", "sailor-max-gpus",
                                    "sailor-zones", "sailor-partitions"};
    for (const Expense expense : kExpenses) out.push_back(limit_option(expense));
    return out;
  }();
  return names;
}
// Those of Slurm that say which nodes a job may have, and how much of them.
constexpr const char* kNodeLimits[] = {"nodelist", "exclude", "constraint", "reservation",
                                       "account",  "qos",     "exclusive",  "cpus-per-task"};

std::optional<std::string> find(const OptionValues& values, const std::string& name) {
  auto it = values.find(name);
  if (it == values.end()) return std::nullopt;
  return it->second;
}

}  // namespace

std::string limits_text(const OptionValues& given, const OptionLookup& slurm_option) {
  nlohmann::ordered_json limits = nlohmann::ordered_json::object();
  for (const std::string& name : plan_limits()) {
    if (const auto value = find(given, name)) limits[name] = *value;
  }
  for (const char* name : kNodeLimits) {
    if (const auto value = slurm_option(name)) limits[name] = *value;
  }
  for (const char* name : {"partition", "nodes"}) {
    if (const auto value = slurm_option(name)) limits[name] = *value;
  }
  return limits.dump();
}

SubmittedLimits parse_limits(const std::string& text, const JobSpec& job) {
  OptionValues all, of_the_plan;
  if (!text.empty()) {
    const auto json = nlohmann::json::parse(text, nullptr, false);
    if (!json.is_object()) throw InputError("the job's SAILOR_LIMITS: is not a JSON object");
    for (const auto& [name, value] : json.items()) {
      if (value.is_string()) all[name] = value.get<std::string>();
    }
  }
  for (const std::string& name : plan_limits()) {
    if (const auto value = find(all, name)) of_the_plan[name] = *value;
  }
  const SubmitOptions options = parse_submit_options(of_the_plan);
  SubmittedLimits limits{.overrides = options.overrides, .node_limits = {}, .most_nodes = {}};
  std::vector<std::string> partitions = limits.overrides.partitions;
  if (partitions.empty()) partitions = split_commas(find(all, "partition").value_or(""));
  if (partitions.empty()) partitions = job.resources.partitions;
  if (!partitions.empty())
    limits.node_limits.push_back(fmt::format("--partition={}", fmt::join(partitions, ",")));
  for (const char* name : kNodeLimits) {
    if (const auto value = find(all, name))
      limits.node_limits.push_back(fmt::format("--{}={}", name, *value));
  }
  if (const auto nodes = find(all, "nodes")) limits.most_nodes = parse_max_nodes(*nodes);
  return limits;
}

SubmittedLimits submitted_limits(const JobSpec& job, const Scheduler& scheduler) {
  return parse_limits(scheduler.carried_value("SAILOR_LIMITS").value_or(""), job);
}

}  // namespace sailor
