#include "spank_plugin/planned_submission.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "planner/inputs/carried_plan.h"
#include "planner/inputs/submitted_limits.h"
#include "planner/plan/plan_json.h"
#include "planner/spec/error.h"
#include "planner/spec/site_config.h"
#include "planner/spec/text.h"
#include "spank_plugin/job_source.h"
#include "spank_plugin/job_watch.h"
#include "spank_plugin/next_part.h"
#include "spank_plugin/node_limits.h"
#include "spank_plugin/node_request.h"
#include "spank_plugin/permission.h"
#include "spank_plugin/planned_command.h"
#include "spank_plugin/planning.h"
#include "spank_plugin/plugin_config.h"
#include "spank_plugin/second_life.h"
#include "spank_plugin/slurm/commands/job_environment.h"
#include "spank_plugin/slurm/expected_start.h"
#include "spank_plugin/slurm/live_cluster.h"
#include "spank_plugin/slurm/releases.h"
#include "spank_plugin/slurm/setup_cache.h"
#include "spank_plugin/slurm/submit_process.h"
#include "spank_plugin/slurm/submitted_job.h"
#include "spank_plugin/slurm/waiting_jobs.h"
#include "spank_plugin/start_plan.h"
#include "spank_plugin/submission_child.h"

namespace sailor {
namespace {

[[noreturn]] void end_submission(int exit_code, const std::string& line) {
  if (!line.empty()) fprintf(stderr, "sailor: %s\n", one_line(line).c_str());
  fflush(nullptr);
  _exit(exit_code);
}

// A step of a job that is there: it runs on the job's nodes, under the job's plan.
std::string enclosing_job(SubmitProgram program) {
  if (program != SubmitProgram::srun) return "";  // salloc and sbatch ask for a job of their own
  if (std::optional<std::string> job = option_value("jobid")) return *job;
  return slurm_job_id();
}

// How often a job is planned because others took its nodes; then it waits for them. What was submitted and
// withdrawn meanwhile claims no node any more.
class Tries {
 public:
  // The job that holds `free` will have ended. `remembers`: the setup may be that of a submission just
  // before.
  Tries(std::map<std::string, JobShare> free, bool remembers)
      : free_(std::move(free)), remembers_(remembers), cache_(identity()) {}

  void count() { ++count_; }
  bool more() const { return count_ < kMost; }
  void withdrawn(const PlannedJob& planned) {
    for (const Component& component : planned.components)
      withdrawn_nodes_.insert(component.nodes.begin(), component.nodes.end());
  }
  SlurmView view() {
    const std::optional<ClusterSetup> known = remembers_ ? cache_.find(time(nullptr)) : std::nullopt;
    remembered_ = known.has_value();
    setup_ = known ? *known : read_and_keep_setup();
    SlurmView view = read_slurm(setup_);
    viewed_ = std::chrono::steady_clock::now();
    correct(view.nodes);
    if (view.accounting) forget_use(*view.accounting, free_);
    return view;
  }
  // The setup of the last view was remembered, and is another one by now: what followed from it does not
  // count. False too if slurmctld does not answer.
  bool was_out_of_date() {
    if (!remembered_) return false;
    remembered_ = false;
    try {
      return read_and_keep_setup() != setup_;
    } catch (const std::exception&) {
      return false;
    }
  }
  // The last view is so recent that another would hardly tell more.
  bool fresh() const { return std::chrono::steady_clock::now() - viewed_ < std::chrono::seconds(5); }
  std::vector<SlurmNode> nodes() const {
    std::vector<SlurmNode> nodes = read_nodes();
    correct(nodes);
    return nodes;
  }

 private:
  ClusterSetup read_and_keep_setup() const {
    const int64_t now = time(nullptr);
    ClusterSetup setup = read_setup();
    cache_.keep(setup, now);
    return setup;
  }

  void correct(std::vector<SlurmNode>& nodes) const {
    forget_planned(nodes, withdrawn_nodes_);
    forget_job(nodes, free_);
  }

  static constexpr int kMost = 5;
  const std::map<std::string, JobShare> free_;
  const bool remembers_;
  const SetupCache cache_;
  ClusterSetup setup_;
  bool remembered_ = false;
  int count_ = 0;
  std::chrono::steady_clock::time_point viewed_;
  std::set<std::string> withdrawn_nodes_;
};

std::map<std::string, JobShare> held_by_part(const PreviousPart& part) {
  return held_by(static_cast<uint32_t>(std::strtoul(part.job.c_str(), nullptr, 10)));
}

void say_taken(const std::string& taken, const char* then) {
  fprintf(stderr, "sailor: since the job was planned, others took %s; %s\n", taken.c_str(), then);
}

PlannedJob plan_on(const SlurmView& view, const SubmitOptions& options, const JobSpec& job,
                   const SiteConfig& site, const NodeWishes& wishes) {
  const WishedCluster cluster = [&](const NodeWishes& of) { return live_cluster(view, site, of); };
  const AskSlurm ask = [&](const std::string& name, const std::vector<std::string>& among, size_t count,
                           std::optional<double> limit_s) {
    PartitionWishes asked = wishes;
    if (limit_s) asked.time_limit_s = limit_s;
    for (const SlurmPartition& partition : view.partitions)
      if (partition.name == name) return expected_start(partition, among, count, asked);
    return std::optional<int64_t>();
  };
  return plan_with_start(options, job, site, wishes, job_length_s(view, wishes), cluster, ask);
}

// On the current view. A remembered setup must not be the reason that there is no plan, or that the job
// waits.
PlannedJob plan_on_current(const SubmitOptions& options, const JobSpec& job, const SiteConfig& site,
                           const NodeWishes& wishes, Tries& tries) {
  try {
    PlannedJob planned = plan_on(tries.view(), options, job, site, wishes);
    if (!planned.waits || !tries.was_out_of_date()) return planned;
  } catch (const std::exception&) {
    if (!tries.was_out_of_date()) throw;
  }
  return plan_on(tries.view(), options, job, site, wishes);
}

// Plans until the planned nodes are still free afterwards: another submission may have taken them meanwhile.
// After a quick search this is left to `seen_later`, the look at the job once it is submitted.
PlannedJob plan_on_free_nodes(const SubmitOptions& options, const JobSpec& job, const SiteConfig& site,
                              const NodeWishes& wishes, bool seen_later, Tries& tries) {
  while (true) {
    tries.count();
    PlannedJob planned = plan_on_current(options, job, site, wishes, tries);
    if (planned.waits || (options.dry_run && !wishes.include_busy)) return planned;
    if (seen_later && !wishes.include_busy && tries.fresh()) return planned;
    std::optional<std::string> taken = first_in_use(planned, tries.nodes(), use_by_others);
    if (!taken) return planned;
    if (wishes.include_busy) {
      planned.table += fmt::format("note: the job waits for its nodes: {}\n", *taken);
      planned.waits = true;
      return planned;
    }
    say_taken(*taken, tries.more() ? "replanning" : "the job waits for its nodes");
    if (!tries.more()) {
      planned.waits = true;
      return planned;
    }
  }
}

// What the plan adds to the first component of the user's command.
std::vector<std::string> extra_options(SubmitProgram program, const Submission& submission,
                                       const PlannedJob& planned) {
  std::vector<std::string> extra;
  if (submission.job.elastic.enabled) {
    extra.emplace_back("--no-kill");
    if (program == SubmitProgram::sbatch) {
      // When the controller's node is lost, the job begins again and goes on from its checkpoint.
      if (!option_value("no-requeue")) extra.emplace_back("--requeue");
      if (!option_value("open-mode")) extra.emplace_back("--open-mode=append");
    }
  }
  // Backfill may shorten the time limit, and so start the job earlier.
  if (planned.least_s > 0)
    extra.push_back(fmt::format("--time-min={}", std::llround(std::ceil(planned.least_s / 60))));
  if (!option_value("comment")) extra.push_back("--comment=" + planned.comment);
  return extra;
}

std::vector<std::string> command_for(SubmitProgram program, const Submission& submission,
                                     const PlannedJob& planned) {
  std::vector<std::vector<std::string>> components;
  for (const Component& component : planned.components) {
    components.push_back(program == SubmitProgram::srun     ? submit_options_with_tasks(component)
                         : program == SubmitProgram::salloc ? submit_options_evenly(component)
                                                            : submit_options(component));
  }
  return planned_command(submission.argv, submission.script_index, components,
                         extra_options(program, submission, planned), repeated_options(option_value));
}

// Of the batch script.
std::vector<std::string> arguments_of(const Submission& submission) {
  const size_t first = submission.script_index ? *submission.script_index + 1 : submission.argv.size();
  return {submission.argv.begin() + static_cast<long>(first), submission.argv.end()};
}

EnvironmentVariables variables_for(const Submission& submission, const PlannedJob& planned, bool moves,
                                   const std::string& limits) {
  EnvironmentVariables variables = plan_environment(planned.plan, planned.planning);
  // Relative paths of a spec on standard input start from where it was submitted.
  variables.emplace_back("SAILOR_JOB", submission.job_path.empty()
                                           ? (std::filesystem::current_path() / "job.yaml").string()
                                           : submission.job_path);
  if (moves) add_node_groups(variables, planned.shape.groups);
  add_queued_nodes(variables, planned.queued);
  variables.emplace_back("SAILOR_CONFIG", planned.site_config);
  variables.emplace_back("SAILOR_LIMITS", limits);
  return variables;
}

// The job need not start on the nodes that it asks for by name, if it does not do so soon.
void let_move(uint32_t job, const FirstLook& look, const PlannedJob& planned, SubmissionChild& sbatch) {
  if (look.taken) {
    say_taken(*look.taken, fmt::format("job {} may start on equal nodes", job).c_str());
  } else {
    sbatch.show_first_line();  // who interrupts the wait knows the job
    if (starts_soon(job)) return;
    fprintf(stderr, "sailor: job %u has not started on %s, and may start on equal nodes\n", job,
            nodes_text(planned).c_str());
  }
  forget_requested_nodes(job);
}

// Submits with sbatch and then checks the job: another job may have taken its nodes meanwhile. Returns if it
// was withdrawn for that reason, to be replanned; otherwise ends the process.
void submit_and_look(const std::vector<std::string>& command, const EnvironmentVariables& variables,
                     const PlannedJob& planned, bool may_plan_again, bool moves, Tries& tries) {
  SubmissionChild sbatch(command, variables);
  std::optional<uint32_t> job = submitted_job(sbatch.first_line());
  try {
    const FirstLook look = job ? look_at(*job, planned) : FirstLook{};
    const bool out_of_date = may_plan_again && (!job || look.pending) && tries.was_out_of_date();
    if (out_of_date || (look.taken && may_plan_again)) {
      if (job) {
        withdraw_job(*job);
        tries.withdrawn(planned);
      }
      const std::string then =
          job ? fmt::format("job {} is withdrawn, replanning", *job) : std::string("replanning");
      if (out_of_date)
        fprintf(stderr, "sailor: partitions or reservations have changed; %s\n", then.c_str());
      else
        say_taken(*look.taken, then.c_str());
      return;
    }
    if (look.pending && moves)
      let_move(*job, look, planned, sbatch);
    else if (look.taken)
      say_taken(*look.taken, fmt::format("job {} waits for its nodes", *job).c_str());
  } catch (const std::exception& error) {
    fprintf(stderr, "sailor: job %u is submitted, but whether it has its nodes is not known: %s\n", *job,
            one_line(error.what()).c_str());
  }
  end_submission(sbatch.hand_on(), "");
}

// The site config of the submission. Its policy is checked, and lowers the limits among the options.
SiteConfig site_under_policy(const PluginConfig& config, const JobSpec& job, SubmitOptions& options) {
  const std::string administrators =
      config.site_config.empty() ? installed_site_config_path() : config.site_config;
  SiteConfig site = load_site_under(administrators,
                                    getenv("SAILOR_CONFIG") == nullptr ? administrators : site_config_path());
  if (!site.policy) return site;
  std::string reason = reason_not_to_plan(*site.policy, this_user());
  if (reason.empty() && !options.plan_file.empty())
    reason = reason_not_to_use(*site.policy, load_plan(options.plan_file));
  if (!reason.empty()) throw Refusal(kFailed, fmt::format("{} (policy in {})", reason, site.file));
  apply(*site.policy, job, options.overrides);
  return site;
}

OptionValues given_options(const sailor_submission& request) {
  OptionValues values;
  for (size_t i = 0; i < sailor_option_count; ++i)
    if (request.values[i] != nullptr) values[sailor_options[i].name] = request.values[i];
  return values;
}

[[noreturn]] void plan_and_run_again(SubmitProgram program, const sailor_submission& request) {
  PluginConfig config = parse_plugin_config(request.argc, request.argv);
  OptionValues values = given_options(request);
  if (std::string job = enclosing_job(program); !job.empty()) {
    throw InputError(
        fmt::format("srun --{}: inside job {} a step runs under the job's plan; remove the option",
                    values.begin()->first, job));
  }
  add_environment_defaults(values, [](const char* name) -> const char* { return getenv(name); });
  SubmitOptions options = parse_submit_options(values);
  options.chain = options.chain && program == SubmitProgram::sbatch;
  refuse_contradictions(option_value);
  const std::optional<PreviousPart> previous = take_previous_part();
  Submission submission =
      read_submission(program, options, request.stdin_offset, previous ? previous->spec : "");

  const SiteConfig site = site_under_policy(config, submission.job, options);
  if (!options.overrides.max_gpus.empty())  // also while the job grows
    values["sailor-max-gpus"] = max_gpus_text(options.overrides.max_gpus);
  NodeWishes wishes = node_wishes(option_value, options, submission.job);
  options.overrides.partitions = wishes.partitions;
  std::string later = reason_to_start_later(option_value);
  const bool seen_later = program == SubmitProgram::sbatch && later.empty();
  for (Tries tries(previous ? held_by_part(*previous) : std::map<std::string, JobShare>(),
                   seen_later && !options.dry_run);
       ;) {
    PlannedJob planned = plan_on_free_nodes(options, submission.job, site, wishes, seen_later, tries);
    fputs(planned.table.c_str(), stderr);
    if (!later.empty() && !wishes.include_busy && !planned.waits && !previous) {
      fprintf(stderr, "note: planned for the nodes that are free now, but %s starts the job later\n",
              later.c_str());
    }
    const bool moves =
        program == SubmitProgram::sbatch && may_move(options, option_value("nodelist").has_value(), planned);
    if (moves) request_shape(planned, planned.waits || !later.empty());
    if (planned.waits) fputs(waiting_nodes_text(options, planned, moves).c_str(), stderr);
    std::vector<std::string> command = command_for(program, submission, planned);
    if (options.dry_run) {
      printf("%s\n", shell_line(command).c_str());
      end_submission(kDone, "");
    }
    EnvironmentVariables variables =
        variables_for(submission, planned, moves, limits_text(values, option_value));
    add_chain_variables(variables, options, submission.job,
                        resubmission_of(submission.options, arguments_of(submission)), previous);
    if (program == SubmitProgram::sbatch && !submission.script_index)
      lseek(STDIN_FILENO, request.stdin_offset, SEEK_SET);
    if (!seen_later || planned.waits) {
      // salloc and srun say themselves that they wait; of the others it is known already.
      leave_to_second_life(variables);
      run_again(command);
    }
    submit_and_look(command, variables, planned, !wishes.include_busy && tries.more(), moves, tries);
  }
}

// The job carries its plan; what salloc and srun start takes it from their own environment.
void attach_plan(spank_t spank, SubmitProgram program, const EnvironmentVariables& variables) {
  for (const auto& [name, value] : variables) {
    if (spank_job_control_setenv(spank, name.c_str(), value.c_str(), 1) != ESPANK_SUCCESS)
      throw std::runtime_error("Slurm rejected the plan's variable " + name);
    if (program != SubmitProgram::sbatch) set_job_variable(name, value);
  }
}

SubmitProgram program_of(const sailor_submission& request) {
  switch (request.program) {
    case SAILOR_SRUN:
      return SubmitProgram::srun;
    case SAILOR_SALLOC:
      return SubmitProgram::salloc;
    default:
      return SubmitProgram::sbatch;
  }
}

}  // namespace

int submit(spank_t spank, const sailor_submission& request) {
  const SubmitProgram program = program_of(request);
  try {
    // Left by the first run for the second; there are several components, and it is taken once.
    static const std::optional<EnvironmentVariables> variables = take_from_first_life();
    if (!variables) plan_and_run_again(program, request);
    if (program == SubmitProgram::sbatch)
      setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);  // the first life waits for the first line (sbatch --wait)
    attach_plan(spank, program, *variables);
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
