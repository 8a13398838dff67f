#include "spank_plugin/doctor/slurm_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <sstream>

#include "planner/spec/name_list.h"

namespace sailor {
namespace {

constexpr int kSlowBackfill_s = 120;

// The value of `name` or `name=value` in a list such as SchedulerParameters; empty if it has none.
std::optional<std::string> parameter(const std::string& list, const std::string& name) {
  for (const std::string& word : split_commas(list)) {
    if (word == name) return "";
    if (word.starts_with(name + "=")) return word.substr(name.size() + 1);
  }
  return std::nullopt;
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

// The last value of a key; keys and values are in lower case.
std::map<std::string, std::string> settings_in(const std::string& text) {
  std::map<std::string, std::string> out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    line.resize(std::min(line.find('#'), line.size()));
    std::erase_if(line, [](unsigned char c) { return std::isspace(c); });
    if (const size_t equals = line.find('='); equals != std::string::npos)
      out[lower(line.substr(0, equals))] = lower(line.substr(equals + 1));
  }
  return out;
}

}  // namespace

Findings check_scheduling(const SlurmSettings& settings) {
  Findings findings;
  if (settings.scheduler == "sched/builtin")
    findings.push_back(warning(
        "slurm", "SchedulerType is sched/builtin: a job waits behind every earlier one of its partition",
        "planned jobs then wait although their nodes are free; use sched/backfill"));
  for (const char* defer : {"defer", "defer_batch"})
    if (parameter(settings.scheduler_parameters, defer))
      findings.push_back(note(
          "slurm",
          fmt::format("SchedulerParameters has {}: jobs start at the next round of the scheduler", defer),
          "others may take planned nodes until then, and the job waits for them; it is replanned only "
          "for what happens in the first tenth of a second"));
  if (const auto interval = parameter(settings.scheduler_parameters, "bf_interval");
      interval && std::atoi(interval->c_str()) > kSlowBackfill_s)
    findings.push_back(note(
        "slurm", fmt::format("SchedulerParameters has bf_interval={}: backfill runs that rarely", *interval),
        "planned jobs that are not first in the queue start that late; 30 to 60 s are usual"));
  if (settings.jobs_are_private)
    findings.push_back(note(
        "slurm", "PrivateData has jobs: users see their own jobs only",
        "nodes that others' pending jobs name look free to the planner, and offers to wait do not know when "
        "busy nodes come free"));
  if (settings.nodes_are_private)
    findings.push_back(warning(
        "slurm", "PrivateData has nodes: users may not see the nodes of the cluster",
        "the planner runs as the user and plans on what `sinfo` shows; remove nodes from PrivateData"));
  if (settings.reservations_are_private)
    findings.push_back(
        note("slurm", "PrivateData has reservations: users see their own only",
             "nodes that will be reserved look free; Slurm holds a job that would run into the reservation"));
  return findings;
}

Findings check_cgroups(const std::string& cgroup_conf) {
  Findings findings;
  const std::map<std::string, std::string> set = settings_in(cgroup_conf);
  const auto constrained = set.find("constrainramspace");
  if (constrained != set.end() && constrained->second == "yes")
    findings.push_back(
        note("cgroup", "ConstrainRAMSpace=yes: a job is killed when it uses more memory than it requested",
             "planned jobs request what their ranks are estimated to need; `request: {memory_per_rank: ...}` "
             "in the site config, or --mem of a submission, replaces the estimate"));
  return findings;
}

}  // namespace sailor
