#include "spank_plugin/planned_submission.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include "planner/spec/error.h"
#include "planner/spec/site_config.h"
#include "planner/spec/text.h"
#include "spank_plugin/job_source.h"
#include "spank_plugin/node_limits.h"
#include "spank_plugin/planned_command.h"
#include "spank_plugin/planning.h"
#include "spank_plugin/plugin_config.h"
#include "spank_plugin/second_life.h"
#include "spank_plugin/slurm/live_cluster.h"
#include "spank_plugin/slurm/plan_environment.h"
#include "spank_plugin/spank_options.h"

namespace sailor {
namespace {

// What init learns and the later hook needs.
struct State {
  long stdin_offset = 0;                          // where the script begins on standard input
  std::optional<EnvironmentVariables> variables;  // this is the second life
};
State& state() {
  static State instance;
  return instance;
}

[[noreturn]] void end_submission(int exit_code, const std::string& line) {
  if (!line.empty()) fprintf(stderr, "sailor: %s\n", one_line(line).c_str());
  fflush(nullptr);
  _exit(exit_code);
}

// A step of a job that is there: it runs on the job's nodes, under the job's plan.
std::string enclosing_job(SubmitProgram program) {
  if (program != SubmitProgram::srun) return "";  // salloc and sbatch ask for a job of their own
  if (std::optional<std::string> job = option_value("jobid")) return *job;
  const char* job = getenv("SLURM_JOB_ID");
  return job == nullptr ? "" : job;
}

// The first planned node that others use now, with the reason; nothing when all are free.
std::optional<std::string> node_in_use(const PlannedJob& planned) {
  std::vector<SlurmNode> nodes = read_nodes();
  for (const Component& component : planned.components) {
    for (const std::string& name : component.nodes) {
      auto node = std::find_if(nodes.begin(), nodes.end(),
                               [&](const SlurmNode& candidate) { return candidate.name == name; });
      if (node == nodes.end()) return name + " is gone";
      if (std::optional<std::string> use = use_by_others(*node)) return name + " " + *use;
    }
  }
  return std::nullopt;
}

// Plans until the planned nodes are still free afterwards: another submission may have taken them meanwhile.
PlannedJob plan_on_free_nodes(const SubmitOptions& options, const JobSpec& job, const std::string& site_file,
                              const NodeWishes& wishes) {
  constexpr int kMostTries = 5;
  for (int tries = 1;; ++tries) {
    PlannedJob planned = plan_job(options, job, site_file, wishes, [&](const SiteConfig& site) {
      return live_cluster(read_slurm(), site, wishes);
    });
    if (options.dry_run) return planned;
    std::optional<std::string> taken = node_in_use(planned);
    if (!taken) return planned;
    if (wishes.include_busy) {
      planned.table += fmt::format("note: the job waits for its nodes: {}\n", *taken);
      return planned;
    }
    bool again = tries < kMostTries;
    fprintf(stderr, "sailor: since the job was planned, %s; %s\n", taken->c_str(),
            again ? "planning again" : "the job waits for its nodes");
    if (!again) return planned;
  }
}

// What the plan adds to the first component of the user's command.
std::vector<std::string> extra_options(const Submission& submission, const PlannedJob& planned) {
  std::vector<std::string> extra;
  if (submission.job.elastic.enabled) extra.emplace_back("--no-kill");
  if (!option_value("comment")) extra.push_back("--comment=" + planned.comment);
  return extra;
}

[[noreturn]] void plan_and_run_again(SubmitProgram program, int argc, char* const* argv) {
  PluginConfig config = parse_plugin_config(argc, argv);
  OptionValues values = given_options();
  if (std::string job = enclosing_job(program); !job.empty()) {
    throw InputError(
        fmt::format("srun --{}: inside job {} a step runs under the job's plan; remove the option",
                    values.begin()->first, job));
  }
  add_environment_defaults(values, [](const char* name) -> const char* { return getenv(name); });
  SubmitOptions options = parse_submit_options(values);
  refuse_contradictions(option_value);
  Submission submission = read_submission(program, options, state().stdin_offset);

  bool own_config = getenv("SAILOR_CONFIG") == nullptr && !config.site_config.empty();
  NodeWishes wishes = node_wishes(option_value, options, submission.job);
  options.overrides.partitions = wishes.partitions;
  PlannedJob planned = plan_on_free_nodes(options, submission.job,
                                          own_config ? config.site_config : site_config_path(), wishes);
  fputs(planned.table.c_str(), stderr);
  if (std::string why = reason_to_start_later(option_value); !why.empty() && !wishes.include_busy) {
    fprintf(stderr, "note: planned for the nodes that are free now, but %s starts the job later\n",
            why.c_str());
  }

  std::vector<std::vector<std::string>> components;
  for (const Component& component : planned.components) {
    components.push_back(program == SubmitProgram::srun ? submit_options_with_tasks(component)
                                                        : submit_options(component));
  }
  std::vector<std::string> command =
      planned_command(submission.argv, submission.script_index, components,
                      extra_options(submission, planned), repeated_options(option_value));
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
  if (program == SubmitProgram::sbatch && !submission.script_index)
    lseek(STDIN_FILENO, state().stdin_offset, SEEK_SET);
  run_again(command);
}

// The job carries its plan; what salloc and srun start takes it from their own environment.
void attach_plan(spank_t spank, SubmitProgram program, const EnvironmentVariables& variables) {
  for (const auto& [name, value] : variables) {
    if (spank_job_control_setenv(spank, name.c_str(), value.c_str(), 1) != ESPANK_SUCCESS)
      throw std::runtime_error("Slurm did not take the plan's variable " + name);
    if (program != SubmitProgram::sbatch) setenv(("SLURM_SPANK_" + name).c_str(), value.c_str(), 1);
  }
}

}  // namespace

void begin_submission(spank_t spank, SubmitProgram program) {
  try {
    forget_options_of_enclosing_job();
    bool step = program == SubmitProgram::srun && getenv("SLURM_JOB_ID") != nullptr;
    if (!step) forget_plan_of_enclosing_job();
    register_options(spank);
    state().variables = take_from_first_life();
    if (program != SubmitProgram::sbatch) return;
    if (!state().variables) keep_script_on_stdin();
    state().stdin_offset = std::max(0L, static_cast<long>(lseek(STDIN_FILENO, 0, SEEK_CUR)));
  } catch (...) {
    // Nothing of this is needed for a plain job; a planned one finds out when its options are done.
  }
}

int finish_options(spank_t spank, SubmitProgram program, int argc, char* const* argv) {
  if (given_options().empty()) return ESPANK_SUCCESS;
  try {
    if (!state().variables) plan_and_run_again(program, argc, argv);
    attach_plan(spank, program, *state().variables);
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
