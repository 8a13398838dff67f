// sbatch: plans the job when an option of ours was given, then runs sbatch again with the plan's nodes; the
// second life submits, with the plan attached. salloc: refused in this version.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include "planner/spec/error.h"
#include "planner/spec/quantity.h"
#include "planner/spec/site_config.h"
#include "planner/spec/text.h"
#include "planner/spec/text_file.h"
#include "spank_plugin/batch_script.h"
#include "spank_plugin/contexts.h"
#include "spank_plugin/planned_command.h"
#include "spank_plugin/planning.h"
#include "spank_plugin/plugin_config.h"
#include "spank_plugin/sbatch_process.h"
#include "spank_plugin/second_life.h"
#include "spank_plugin/slurm/live_cluster.h"
#include "spank_plugin/slurm/plan_environment.h"
#include "spank_plugin/spank_options.h"

namespace sailor {
namespace {

// What init learns and the later hook needs; SPANK offers no place of its own for it.
struct AllocatorState {
  bool is_sbatch = false;
  long stdin_offset = 0;                          // where the script begins on standard input
  std::optional<EnvironmentVariables> variables;  // this is the second life
};
AllocatorState& state() {
  static AllocatorState instance;
  return instance;
}

// Ends the submission. Returning an error to Slurm would not: an optional plugin's errors are ignored, and
// the job would be submitted without its plan.
[[noreturn]] void end_submission(int exit_code, const std::string& line) {
  if (!line.empty()) fprintf(stderr, "sailor: %s\n", one_line(line).c_str());
  fflush(nullptr);
  _exit(exit_code);
}

// Options that say how many of which nodes, which is the plan's business.
void refuse_options_of_the_plan() {
  for (const char* name : {"nodes", "nodelist", "nodefile", "ntasks", "ntasks-per-node", "ntasks-per-socket",
                           "ntasks-per-core", "ntasks-per-gpu", "gres", "gpus", "gpus-per-node",
                           "gpus-per-socket", "gpus-per-task", "cpus-per-gpu", "mem-per-gpu"}) {
    if (option_is_set(name)) {
      throw InputError(
          fmt::format("--{}: the plan decides it; remove it (--sailor-max-gpus limits the plan)", name));
    }
  }
  for (const char* name : {"array", "constraint", "reservation", "contiguous"}) {
    if (option_is_set(name))
      throw InputError(fmt::format("--{}: not supported together with a plan; remove it", name));
  }
}

std::vector<std::string> split_commas(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find(',', begin), text.size());
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

NodeWishes node_wishes(const SubmitOptions& options, const JobSpec& job) {
  NodeWishes wishes;
  wishes.partitions = options.overrides.partitions;
  if (wishes.partitions.empty()) wishes.partitions = split_commas(option_value("partition"));
  if (wishes.partitions.empty()) wishes.partitions = job.resources.partitions;
  wishes.excluded_nodes = expand_hosts(option_value("exclude"));
  wishes.time_limit_s = parse_duration(option_value("time"));
  wishes.include_busy = options.wait_for_nodes;
  return wishes;
}

struct Submission {
  std::vector<std::string> argv;
  std::optional<size_t> script_index;
  std::string job_path;  // absolute; empty when the spec is on standard input
  JobSpec job;
};

// Finds the script and the job spec that the submission is about.
Submission read_submission(const SubmitOptions& options) {
  Submission submission;
  submission.argv = command_line();
  std::optional<ParsedCommand> command = parse_command(submission.argv);
  if (!command) {
    throw std::runtime_error(
        "this build of sbatch does not export its option table; planned submissions need it");
  }
  if (command->has_components) throw InputError("the planner chooses the components of the job; remove ':'");
  submission.script_index = command->script_index;

  std::string script;
  std::string script_name = "standard input";
  std::string script_path;
  if (command->script_index) {
    script_name = submission.argv[*command->script_index];
    script_path = find_script(script_name);
    script = read_text_file(script_path);
  } else if (!command->wrap) {
    script = read_descriptor(STDIN_FILENO, state().stdin_offset);
  }
  refuse_components(script, script_name);

  if (!options.job_file.empty()) {
    submission.job = load_job_spec(options.job_file);
    submission.job_path = std::filesystem::absolute(options.job_file).lexically_normal().string();
  } else if (is_job_spec(script)) {
    submission.job = parse_job_spec(script, script_name);
    submission.job_path = script_path;
  } else {
    throw InputError(
        {command->wrap ? "--wrap" : script_name},
        "not a job spec (its first line would be \"#!/usr/bin/env -S sailor run\"); name the job spec with "
        "--sailor-job=FILE");
  }
  return submission;
}

[[noreturn]] void plan_and_run_again(int argc, char* const* argv) {
  PluginConfig config = parse_plugin_config(argc, argv);
  OptionValues values = given_options();
  add_environment_defaults(values, [](const char* name) -> const char* { return getenv(name); });
  SubmitOptions options = parse_submit_options(values);
  refuse_options_of_the_plan();
  Submission submission = read_submission(options);

  bool own_config = getenv("SAILOR_CONFIG") == nullptr && !config.site_config.empty();
  NodeWishes wishes = node_wishes(options, submission.job);
  options.overrides.partitions = wishes.partitions;
  PlannedJob planned =
      plan_job(options, submission.job, own_config ? config.site_config : site_config_path(),
               [&](const SiteConfig& site) { return live_cluster(read_slurm(), site, wishes); });
  fputs(planned.table.c_str(), stderr);

  std::vector<std::string> extra;
  if (submission.job.elastic.enabled) extra.emplace_back("--no-kill");
  std::vector<std::string> repeated;
  std::string cpus = option_value("cpus-per-task");
  if (!cpus.empty()) repeated.push_back("--cpus-per-task=" + cpus);
  std::vector<std::string> command =
      planned_command(submission.argv, submission.script_index, planned.components, extra, repeated);
  if (options.dry_run) {
    printf("%s\n", shell_line(command).c_str());
    end_submission(kDone, "");
  }

  EnvironmentVariables variables = plan_environment(planned.plan);
  // Relative paths of a spec on standard input start from where it was submitted.
  variables.emplace_back("SAILOR_JOB", submission.job_path.empty()
                                           ? (std::filesystem::current_path() / "job.yaml").string()
                                           : submission.job_path);
  variables.emplace_back("SAILOR_CONFIG", planned.site_config);
  leave_to_second_life(variables);
  if (!submission.script_index) lseek(STDIN_FILENO, state().stdin_offset, SEEK_SET);
  run_again(command);
}

}  // namespace

int allocator_init(spank_t spank) {
  try {
    forget_options_of_enclosing_job();
    forget_plan_of_enclosing_job();
    register_options(spank);
    state().is_sbatch = std::string(program_invocation_short_name) == "sbatch";
    if (!state().is_sbatch) return ESPANK_SUCCESS;
    state().variables = take_from_first_life();
    if (!state().variables) keep_script_on_stdin();
    state().stdin_offset = std::max(0L, static_cast<long>(lseek(STDIN_FILENO, 0, SEEK_CUR)));
  } catch (...) {
    // Nothing of this is needed for a plain job; a planned one finds out when its options are done.
  }
  return ESPANK_SUCCESS;
}

int allocator_options_done(spank_t spank, int argc, char* const* argv) {
  if (given_options().empty()) return ESPANK_SUCCESS;
  try {
    if (!state().is_sbatch) {
      throw InputError(
          fmt::format("{} --{}: only sbatch is supported in this version; submit the job with sbatch",
                      program_invocation_short_name, given_options().begin()->first));
    }
    if (!state().variables) plan_and_run_again(argc, argv);
    for (const auto& [name, value] : *state().variables) {
      if (spank_job_control_setenv(spank, name.c_str(), value.c_str(), 1) != ESPANK_SUCCESS) {
        throw std::runtime_error("Slurm did not take the plan's variable " + name);
      }
    }
    return ESPANK_SUCCESS;
  } catch (const InputError& error) {
    end_submission(kBadInput, error.what());
  } catch (const Refusal& refusal) {
    end_submission(refusal.exit_code(), refusal.what());
  } catch (const std::exception& error) {
    end_submission(kFailed, error.what());
  } catch (...) {
    end_submission(kFailed, "unknown error while planning");
  }
}

}  // namespace sailor
