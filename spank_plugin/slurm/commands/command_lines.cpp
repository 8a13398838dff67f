#include "spank_plugin/slurm/commands/command_lines.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <sstream>

#include "spank_plugin/slurm/commands/scontrol.h"
#include "spank_plugin/slurm/releases.h"

namespace sailor {
namespace {

constexpr int kLeastMinutes = 1;  // minimum time limit of a job
constexpr int kMostNice = 2147483645;

int64_t minutes(int64_t seconds) {
  return std::max<int64_t>(kLeastMinutes, (seconds + 59) / 60);
}

void add_option(std::vector<std::string>& command, const char* name, const std::string& value) {
  if (!value.empty()) command.push_back(fmt::format("--{}={}", name, value));
}

// sbatch reads it in the local time of its environment.
std::string deadline(int64_t time_s) {
  const auto time = static_cast<std::time_t>(time_s);
  std::tm local{};
  localtime_r(&time, &local);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "--deadline=%Y-%m-%dT%H:%M:%S", &local);
  return text.data();
}

}  // namespace

std::vector<std::string> srun_step(const StepSpec& step) {
  const AllocatedNode& node = step.node;
  // Without --overlap steps wait forever, without --mem=0 they fail, and -c is not inherited.
  std::vector<std::string> command = {"srun",    "--mpi=none", "--overlap",
                                      "--mem=0", "--no-kill",  "--kill-on-bad-exit=0"};
  if (node.het_group >= 0) command.push_back(fmt::format("--het-group={}", node.het_group));
  if (node.cpus > 0) command.insert(command.end(), {"-c", std::to_string(node.cpus)});
  // In a job that asked for none itself (all nodes of a partition with several types), steps have no GPU
  // unless they ask for it; types are refused there.
  if (node.gpus > 0) command.push_back(fmt::format("{}{}", kStepGpus, node.gpus));
  command.insert(command.end(), {"-w", node.name, "-N1", "-n1", "--export=ALL", "--input=none"});
  command.insert(command.end(), step.command.begin(), step.command.end());
  return command;
}

std::vector<std::string> srun_program(const NodeProgram& program) {
  std::vector<std::string> command;
  if (program.limit_s) command = {"timeout", std::to_string(*program.limit_s)};
  command.push_back("srun");
  if (program.immediate_s)
    command.insert(command.end(), {fmt::format("--immediate={}", *program.immediate_s), "--quiet"});
  command.insert(command.end(),
                 {"--job-name=" + program.job_name, "--nodes=1", "--ntasks=1", "--nodelist=" + program.node});
  if (program.whole_node) command.insert(command.end(), {"--exclusive", "--mem=0", "--cpu-bind=none"});
  add_option(command, "partition", program.partition);
  if (program.gpus > 0) command.push_back(fmt::format("--gres=gpu:{}", program.gpus));
  command.insert(command.end(), program.command.begin(), program.command.end());
  return command;
}

std::vector<std::string> salloc_over_parts(const std::string& name, const std::vector<JobPart>& parts,
                                           const std::vector<std::string>& command) {
  std::vector<std::string> words = {"salloc", "--quiet"};
  for (const JobPart& part : parts) {
    if (words.size() > 2) words.push_back(":");
    words.insert(
        words.end(),
        {"--job-name=" + name, "--exclusive", "--mem=0", fmt::format("--nodes={}", part.nodes.size()),
         fmt::format("--nodelist={}", fmt::join(part.nodes, ",")), "--partition=" + part.partition});
    if (part.gpus > 0) words.push_back(fmt::format("--gres=gpu:{}", part.gpus));
  }
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

std::vector<std::string> sbatch_script(const JobRequest& request, bool test_only) {
  std::vector<std::string> command = {"sbatch",
                                      test_only ? "--test-only" : "--parsable",
                                      "--job-name=" + request.name,
                                      fmt::format("--nodes={}", request.nodes),
                                      "--exclusive",
                                      "--mem=0"};
  add_option(command, "partition", request.partition);
  add_option(command, "nodelist", fmt::format("{}", fmt::join(request.node_names, ",")));
  add_option(command, "exclude", fmt::format("{}", fmt::join(request.excluded_nodes, ",")));
  add_option(command, "constraint", request.feature);
  if (!request.gpu_type.empty()) command.push_back(fmt::format("--gres=gpu:{}:1", request.gpu_type));
  if (request.time_limit_s) command.push_back(fmt::format("--time={}", minutes(*request.time_limit_s)));
  if (request.least_s) command.push_back(fmt::format("--time-min={}", minutes(*request.least_s)));
  if (request.deadline_s) command.push_back(deadline(*request.deadline_s));
  if (request.nice > 0) command.push_back(fmt::format("--nice={}", request.nice));
  if (request.no_kill) command.push_back("--no-kill");
  command.push_back(request.requeue ? "--requeue" : "--no-requeue");
  command.push_back("--wrap=" + request.script);
  return command;
}

std::vector<std::string> sbatch_next_part(const Resubmission& submission, const std::string& name,
                                          const std::string& ending_job, const std::string& script) {
  std::vector<std::string> command = {"sbatch"};
  for (const GivenOption& option : submission.options)
    command.push_back("--" + option.name + (option.value.empty() ? "" : "=" + option.value));
  // Those of #SBATCH lines in the script come first.
  command.insert(command.end(), {"--parsable", "--job-name=" + name, "--begin=now",
                                 "--dependency=afterany:" + ending_job, "--open-mode=append", script});
  command.insert(command.end(), submission.arguments.begin(), submission.arguments.end());
  return command;
}

std::optional<std::string> submitted_id(const std::string& sbatch_output) {
  std::istringstream lines(sbatch_output);
  for (std::string line; std::getline(lines, line);) {
    const std::string id = line.substr(0, line.find(';'));  // ID, or ID;CLUSTER
    if (!id.empty() && id.find_first_not_of("0123456789") == std::string::npos) return id;
  }
  return std::nullopt;
}

std::optional<int64_t> promised_start(const std::string& sbatch_output) {
  // sbatch: Job 7 to start at 2026-01-02T03:04:05 using 8 processors on nodes n1 in partition p
  const std::string words = " to start at ";
  const size_t at = sbatch_output.find(words);
  if (at == std::string::npos) return std::nullopt;
  return time_in_scontrol("Start=" + sbatch_output.substr(at + words.size()), "Start");
}

// Slurm shortens the time limit to what backfill has room for, but not below --time-min, and removes the job
// when that no longer fits before the deadline.
std::vector<std::string> sbatch_helper(const HelperRequest& request, int64_t now_s) {
  std::vector<std::string> command = {"sbatch",
                                      "--parsable",
                                      "--job-name=" + helper_job_name(request.main_job),
                                      "--nodes=1",
                                      "--no-requeue",
                                      "--export=ALL",
                                      fmt::format("--comment=sailor: helps job {}", request.main_job)};
  if (request.whole_node) {
    command.insert(command.end(), {"--exclusive", "--mem=0"});
  } else {
    command.push_back("--ntasks=1");
    if (request.cpus > 0) command.push_back(fmt::format("--cpus-per-task={}", request.cpus));
    if (request.memory_mb > 0) command.push_back(fmt::format("--mem={}M", request.memory_mb));
  }
  if (request.gpus > 0)
    command.push_back(fmt::format("--gres={}:{}", request.gres.empty() ? "gpu" : request.gres, request.gpus));
  add_option(command, "nodelist", request.node);
  add_option(command, "exclude", fmt::format("{}", fmt::join(request.excluded_nodes, ",")));
  add_option(command, "constraint", request.feature);
  add_option(command, "partition", request.partition);
  add_option(command, "account", request.account);
  add_option(command, "qos", request.qos);
  add_option(command, "reservation", request.reservation);
  if (request.end_s) {
    const int64_t left_s = *request.end_s - now_s;
    const int64_t least = std::clamp<int64_t>(left_s / 60, 1, minutes(request.least_s));
    command.push_back(fmt::format("--time={}", minutes(left_s)));
    command.push_back(fmt::format("--time-min={}", least));
    command.push_back(deadline(std::max(*request.end_s, now_s + 60 * least)));
  }
  if (request.after_others) command.push_back(fmt::format("--nice={}", kMostNice));
  add_option(command, "output", request.output_file);
  if (!request.output_file.empty()) command.push_back("--open-mode=append");
  command.push_back("--wrap=" + request.script);
  return command;
}

std::string helper_job_name(const std::string& main_job) {
  return fmt::format("sailor-{}-helper", main_job);
}

bool is_helper_job_name(const std::string& name) {
  constexpr std::string_view kStart = "sailor-", kEnd = "-helper";
  if (!name.starts_with(kStart) || !name.ends_with(kEnd) || name.size() <= kStart.size() + kEnd.size())
    return false;
  return std::all_of(name.begin() + kStart.size(), name.end() - kEnd.size(),
                     [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace sailor
