#include "spank_plugin/slurm/commands/scontrol.h"

#include <cstdlib>
#include <ctime>
#include <map>

#include "planner/spec/error.h"
#include "planner/spec/host_list.h"
#include "planner/spec/name_list.h"
#include "spank_plugin/slurm/commands/gres.h"
#include "spank_plugin/slurm/commands/job_share.h"

namespace sailor {
namespace {

// Slurm prints "(null)" and "N/A" for what is not there.
std::string given(const std::string& line, const std::string& key) {
  const std::string value = scontrol_value(line, key);
  return value == "(null)" || value == "N/A" ? "" : value;
}

int number(const std::string& line, const std::string& key) {
  return std::atoi(scontrol_value(line, key).c_str());
}

JobState job_state(const std::string& word) {
  static const std::map<std::string, JobState> kStates = {
      {"PENDING", JobState::pending},       {"RUNNING", JobState::running},
      {"COMPLETING", JobState::completing}, {"COMPLETED", JobState::completed},
      {"FAILED", JobState::failed},         {"NODE_FAIL", JobState::node_failed},
      {"CANCELLED", JobState::cancelled},   {"TIMEOUT", JobState::timed_out},
      {"PREEMPTED", JobState::preempted},   {"DEADLINE", JobState::cancelled}};
  const auto found = kStates.find(word);
  return found == kStates.end() ? JobState::other : found->second;
}

std::vector<std::string> host_names(const std::string& list) {
  try {
    return expand_host_list(list);
  } catch (const InputError&) {
    return {};
  }
}

int gpus_in(const std::string& gres_text) {
  int gpus = 0;
  for (const Gres& gres : parse_gres(gres_text)) gpus += gres.name == "gpu" ? gres.count : 0;
  return gpus;
}

}  // namespace

std::string scontrol_value(const std::string& line, const std::string& key) {
  const std::string padded = " " + line;
  const size_t begin = padded.find(" " + key + "=");
  if (begin == std::string::npos) return "";
  const size_t value = begin + key.size() + 2;
  return padded.substr(value, padded.find_first_of(" \n", value) - value);
}

std::optional<int64_t> time_in_scontrol(const std::string& line, const std::string& key) {
  std::tm local{};
  local.tm_isdst = -1;
  const std::string text = scontrol_value(line, key);
  if (!strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &local)) return std::nullopt;
  return std::mktime(&local);
}

std::optional<QueuedJob> job_in_scontrol(const std::string& line) {
  const std::string state = scontrol_value(line, "JobState");
  if (state.empty()) return std::nullopt;
  QueuedJob job;
  job.id = scontrol_value(line, "JobId");
  job.name = scontrol_value(line, "JobName");
  job.partition = given(line, "Partition");
  job.state = job_state(state);
  // A job that was cancelled gives no reason.
  const std::string reason = scontrol_value(line, "Reason");
  job.failed = job.state == JobState::failed || job.state == JobState::node_failed ||
               reason == "JobLaunchFailure" || reason == "NonZeroExitCode" || reason == "NodeDown";
  job.out_of_time = job.state == JobState::timed_out || reason == "TimeLimit";
  job.preempted = job.state == JobState::preempted || time_in_scontrol(line, "PreemptTime").has_value();
  job.restarts = number(line, "Restarts");
  if (const std::string nodes = given(line, "NodeList"); !nodes.empty()) job.nodes = host_names(nodes);
  job.head_node = given(line, "BatchHost");
  job.submit_directory = given(line, "WorkDir");
  job.cpus = number(line, "NumCPUs");
  for (const auto& [node, share] : shares_in_scontrol(line))
    if (const int gpus = gpus_in(share.gres); gpus > 0) job.gpus_on[node] = gpus;
  job.start_s = time_in_scontrol(line, "StartTime");
  job.end_s = time_in_scontrol(line, "EndTime");
  return job;
}

std::optional<NodeInfo> node_in_scontrol(const std::string& line) {
  NodeInfo node;
  node.name = scontrol_value(line, "NodeName");
  if (node.name.empty()) return std::nullopt;
  node.address = scontrol_value(line, "NodeAddr");
  // A base state, then flags: ALLOCATED+DRAIN, DOWN*; `*` marks a node that does not respond.
  const std::string state = scontrol_value(line, "State");
  const auto has = [&state](const char* word) { return state.find(word) != std::string::npos; };
  node.up = !has("DOWN");
  node.responds = !has("*") && !has("NOT_RESPONDING");
  node.draining = has("DRAIN");
  node.in_use = has("ALLOCATED") || has("MIXED") || has("COMPLETING");
  node.partitions = split_commas(given(line, "Partitions"));
  node.features = split_commas(given(line, "ActiveFeatures"));
  for (const Gres& gres : parse_gres(given(line, "Gres"))) {
    if (gres.name == "gpu" && gres.count > 0) node.gpus[gres.type] += gres.count;
  }
  node.cpus = number(line, "CPUTot");
  return node;
}

}  // namespace sailor
