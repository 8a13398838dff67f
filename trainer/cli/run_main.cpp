// `sailor run JOB.yaml`: the controller of a job. Also the interpreter of a job spec that was submitted as a
// batch script.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>

#include "planner/cli/program.h"
#include "planner/inputs/carried_plan.h"
#include "planner/inputs/submitted_limits.h"
#include "planner/plan/plan_json.h"
#include "planner/plan/rank_layout.h"
#include "planner/plan/validate.h"
#include "planner/process/subprocess.h"
#include "planner/scheduler/scheduler.h"
#include "planner/spec/catalog.h"
#include "planner/spec/error.h"
#include "planner/spec/lora_parameters.h"
#include "planner/spec/site_config.h"
#include "planner/spec/text_file.h"
#include "planner/spec/training_flops.h"
#include "trainer/checkpoint/checkpoint_directory.h"
#include "trainer/checkpoint/directory_lock.h"
#include "trainer/cli/other_trainer.h"
#include "trainer/data/token_data.h"
#include "trainer/elastic/controller.h"
#include "trainer/elastic/start_plan.h"
#include "trainer/launch/open_mpi.h"
#include "trainer/record/model_flops.h"

namespace {

namespace fs = std::filesystem;
using namespace sailor;

struct Arguments {
  std::string job_file;
  std::string plan_file;
  std::string directory;
  bool local = false;
  std::optional<double> lease_s;
  int64_t trace_step = 0;
  bool fresh = false;
  std::vector<std::string> command;
};

// What the submission sent along with the job.
std::string submitted(const Scheduler& scheduler, const std::string& name) {
  return scheduler.carried_value(name).value_or("");
}

// The plan, on the nodes of the job. `replanning`: of a plan for other nodes than the planned ones.
StartPlan find_plan(const JobSpec& job, const Arguments& arguments, const Scheduler& scheduler,
                    const Allocation& allocation, const Replanner::Options& replanning) {
  if (!arguments.plan_file.empty()) return {load_plan(arguments.plan_file)};
  if (std::optional<Plan> plan = carried_plan(scheduler)) {
    if (arguments.local) return {*plan};
    std::vector<std::string> nodes;
    for (const AllocatedNode& node : allocation.nodes) nodes.push_back(node.name);
    return plan_for_nodes(job, *plan, carried_node_groups(scheduler), nodes, replanning);
  }
  throw InputError(
      "this job carries no plan: submit it with `sbatch --sailor-objective=throughput JOB.yaml`, or give "
      "--plan FILE");
}

void check(const JobSpec& job, const Plan& plan, const Arguments& arguments, const Allocation& allocation) {
  const Where where{arguments.plan_file.empty() ? "plan" : arguments.plan_file, 0};
  if (const auto violations = check_plan(plan, job); !violations.empty()) {
    const size_t more = violations.size() - 1;
    throw InputError(where, violations.front() + (more > 0 ? fmt::format(" (and {} more)", more) : ""));
  }
  if (arguments.local) return;
  for (const std::string& node : RankLayout(plan).nodes()) {
    if (node.empty())
      throw InputError(
          where,
          "stages are not placed on nodes: use a plan that the Slurm plugin made, or run with --local");
    if (!allocation.find(node))
      throw InputError(where, fmt::format("node {} does not belong to job {}", node, allocation.job_id));
  }
}

std::string checkpoints_of(const JobSpec& job) {
  return relative_to_file(job.checkpoint.directory, job.file);
}

// A job that was started before, or that continues another one, keeps their checkpoints.
void begin_anew(const JobSpec& job, const Arguments& arguments, const Scheduler& scheduler,
                const std::string& run_directory) {
  const bool asked = arguments.fresh || !submitted(scheduler, "SAILOR_FRESH").empty();
  const bool restarted =
      scheduler.own_job().value_or(OwnJob{}).restarts > 0 && fs::exists(run_directory + "/plan.json");
  if (!asked || restarted || job.checkpoint.directory.empty() || !submitted(scheduler, "SAILOR_RUN").empty())
    return;
  const DirectoryLock lock(checkpoints_of(job));
  if (const std::string aside = set_checkpoints_aside(checkpoints_of(job)); !aside.empty())
    std::cout << "sailor: earlier checkpoints are set aside in " << aside << std::endl;
}

int64_t checkpoint_bytes(const JobSpec& job) {
  int64_t elements = 0;
  for (const ParameterSpec& parameter :
       trained_parameters(job.model, job.training.lora, job.model.vocabulary))
    elements += parameter.elements();
  const int states = job.training.ema ? 4 : 3;  // the value, two moments, and the average
  return elements * states * 4;
}

// A run continues from the newest checkpoint that is complete, which must be one of this job. Returns its
// step; 0 if there is none.
int64_t steps_in_checkpoints(const JobSpec& job) {
  if (job.checkpoint.directory.empty()) return 0;
  std::vector<std::string> skipped;  // the ranks report them when they load
  const auto found = newest_checkpoint(checkpoints_of(job), skipped);
  if (!found) return 0;
  require_fit(found->manifest, found->path, job);
  return found->manifest.step;
}

// Whether a GPU type of the plan is emulated on this cluster.
bool is_emulated(const Plan& plan, const Catalog& catalog) {
  for (const PlanPipeline& pipeline : plan.pipelines) {
    for (const PlanStage& stage : pipeline.stages) {
      if (catalog.at(stage.gpu_type).emulation) return true;
    }
  }
  return false;
}

std::string default_directory(const Arguments& arguments, const Scheduler& scheduler) {
  if (arguments.local) return "sailor-local";
  if (const std::string run = submitted(scheduler, "SAILOR_RUN"); !run.empty()) return run;
  const OwnJob job = scheduler.own_job().value_or(OwnJob{});
  return fmt::format("{}/sailor-{}", job.submit_directory.empty() ? "." : job.submit_directory, job.id);
}

// `sailor status JOBID` and the like find the run of a job that continues another one.
void link_to_run(const Arguments& arguments, const Scheduler& scheduler, const std::string& run_directory) {
  if (!arguments.directory.empty() || submitted(scheduler, "SAILOR_RUN").empty()) return;
  const fs::path run(run_directory);
  const fs::path link = run.parent_path() / fmt::format("sailor-{}", own_job_id(scheduler));
  std::error_code error;  // without the link only the name is missing
  if (!fs::exists(link, error)) fs::create_directory_symlink(run.filename(), link, error);
}

// A job that was requeued need not wait for the nodes on which it was.
void restart_anywhere(Scheduler& scheduler) {
  const std::optional<OwnJob> own = scheduler.own_job();
  if (!own || !may_move(scheduler)) return;
  try {
    const std::optional<QueuedJob> job = scheduler.find_job(own->id);
    if (job && job->restarts != own->restarts) scheduler.forget_node_names(own->id);
  } catch (const std::runtime_error&) {  // then it waits for them
  }
}

// Replaces this process by one that starts the ranks without mpirun, in the environment that it had.
[[noreturn]] void start_without_mpirun(const std::vector<std::string>& environment, char** argv) {
  std::cerr << "sailor: starting the ranks again, without mpirun\n";
  clearenv();
  for (const std::string& variable : environment) {
    const size_t equals = variable.find('=');
    setenv(variable.substr(0, equals).c_str(), variable.c_str() + equals + 1, 1);
  }
  setenv("SAILOR_MPIRUN", "none", 1);
  std::vector<std::string> command = {fs::read_symlink("/proc/self/exe")};
  for (char** argument = argv + 1; *argument; ++argument) command.emplace_back(*argument);
  become_program(command);
}

// What the site says of the job.
void take_site(ControllerOptions& options, const JobSpec& job, const Plan& plan) {
  options.elastic = job.elastic.enabled;
  options.grow_every_s = options.elastic ? job.elastic.grow_every_s : 0;
  if (!fs::exists(site_config_path())) return;  // nothing is emulated
  const SiteConfig site = load_site_config(site_config_path());
  if (!site.jobs_may_grow) options.grow_every_s = 0;
  options.yields = site.jobs_yield || job.elastic.yield;
  options.grow_partition = site.grow_partition;
  options.grow_qos = site.grow_qos;
  options.encrypts_data = site.encrypt_data;
  options.replanning.time.limit_s = site.elastic_time_limit_s;
  options.catalog = site.catalog;
  options.profiles = site.profiles;
  const Catalog catalog = load_catalog(site.catalog);
  options.emulated = is_emulated(plan, catalog);
  options.peak_flops = peak_flops(plan, catalog, precision_of(plan, job));
}

// A job of another trainer.
int run_program_of(const JobSpec& job, const std::string& job_text, const Plan& plan,
                   const Arguments& arguments, const ControllerOptions& options, Scheduler& scheduler) {
  if (arguments.local) throw InputError("--local: is for jobs of Sailor's own trainer");
  link_to_run(arguments, scheduler, options.run_directory);
  if (!options.moved.empty()) std::cout << "sailor: " << options.moved << std::endl;
  const int code = run_other_trainer(job, job_text, plan, options, scheduler);
  if (code != kDone) restart_anywhere(scheduler);
  return code;
}

int run(const Arguments& arguments, Scheduler& scheduler) {
  // The script that Slurm runs is a copy; relative paths in it refer to the submitted file. A spec that the
  // script names is used in its place.
  const bool is_copy = fs::path(arguments.job_file).filename() == "slurm_script";
  const std::string submitted_file = is_copy ? submitted(scheduler, "SAILOR_JOB") : "";
  const std::string job_file = fs::absolute(submitted_file.empty() ? arguments.job_file : submitted_file);
  const std::string job_text = read_text_file(arguments.job_file);
  JobSpec job = parse_job_spec(job_text, job_file);
  if (!arguments.command.empty()) {
    if (job.trainer.own()) throw InputError("COMMAND: is for jobs with `trainer`, which this one has not");
    job.trainer.command = arguments.command;
  }
  if (std::string config = submitted(scheduler, "SAILOR_CONFIG"); !config.empty())
    setenv("SAILOR_CONFIG", config.c_str(), 1);  // a user's own does not replace one with a policy
  const SubmittedLimits limits = submitted_limits(job, scheduler);
  ControllerOptions options;
  options.replanning = {site_config_path(), limits.overrides};
  options.allocation = arguments.local ? Allocation{} : scheduler.own_allocation();
  const StartPlan start = find_plan(job, arguments, scheduler, options.allocation, options.replanning);
  const Plan& plan = start.plan;
  check(job, plan, arguments, options.allocation);
  options.local = arguments.local;
  options.job_directory = fs::path(job_file).parent_path();
  options.run_directory =
      arguments.directory.empty() ? default_directory(arguments, scheduler) : arguments.directory;
  if (job.trainer.own() || job.elastic.enabled) take_site(options, job, plan);
  constexpr double kLease_s = 15;  // of a job that nothing but its end can come of
  options.lease_s = arguments.lease_s.value_or(job.elastic.enabled ? job.elastic.lease_s : kLease_s);
  options.nodes_s = job.elastic.wait_s;
  options.node_limits = limits.node_limits;
  options.most_nodes = limits.most_nodes;
  if (arguments.plan_file.empty()) options.queued = carried_queued_nodes(scheduler);
  if (arguments.plan_file.empty()) options.planning = take_carried_planning(scheduler);
  start.place(options.planning);
  options.moved = start.text;
  if (!job.trainer.own()) {
    options.run_directory = fs::absolute(options.run_directory);  // for programs that change theirs
    return run_program_of(job, job_text, plan, arguments, options, scheduler);
  }
  // A missing or broken file is told now, not by every rank.
  const TokenData data = TokenData::open(job);
  for (const ValidationSet& set : job.data.validation) TokenData::open_validation(job, set);
  const std::string& run_directory = options.run_directory;
  begin_anew(job, arguments, scheduler, run_directory);
  const int64_t saved = steps_in_checkpoints(job);
  // A start that was lost in its last moments completes its summary.
  const bool lacks_summary =
      fs::exists(run_directory + "/plan.json") && !fs::exists(run_directory + "/summary.json");
  if (saved >= job.training.steps && !lacks_summary) {
    std::cout << fmt::format(
        "sailor: nothing to do: all {} steps are trained, and saved in {}; to train again, give --fresh "
        "(sbatch --sailor-fresh)\n",
        job.training.steps, checkpoints_of(job));
    return kDone;
  }

  if (!job.checkpoint.directory.empty()) {
    options.saved_steps = [job] { return steps_in_checkpoints(job); };
    options.checkpoint_bytes = checkpoint_bytes(job);
  }
  link_to_run(arguments, scheduler, run_directory);
  options.data = data.describe();
  options.unigram_entropy = data.unigram_entropy();
  options.step_flops = static_cast<double>(job.training.global_batch * job.model.sequence) *
                       training_flops_per_token(job.model, job.training.lora, data.document_lengths());
  options.trace_step = arguments.trace_step > 0 ? arguments.trace_step : job.metrics.trace_step;
  if (options.trace_step > job.training.steps)
    throw InputError(fmt::format("--trace-step: step {} is beyond the last step, {}", options.trace_step,
                                 job.training.steps));
  if (!start.text.empty()) std::cout << "sailor: " << start.text << std::endl;
  const int code = run_controller(job, job_text, plan, options, scheduler, std::cout);
  if (code != kDone) restart_anywhere(scheduler);
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> environment;
  for (char** variable = environ; *variable; ++variable) environment.emplace_back(*variable);
  Arguments arguments;
  CLI::App app{"Trains a job, as its controller: inside a Slurm allocation, or on this machine",
               "sailor run"};
  app.add_option("JOB", arguments.job_file, "job spec (YAML)")->required();
  app.add_option("COMMAND", arguments.command, "program and arguments instead of trainer.command, after --");
  app.add_option("--plan", arguments.plan_file, "use this plan instead of the job's own");
  app.add_option("--directory", arguments.directory,
                 "run directory for metrics, logs and the summary (default: sailor-JOBID)");
  app.add_flag("--fresh", arguments.fresh,
               "train from the beginning, and set earlier checkpoints aside; not when a job restarts");
  app.add_flag("--local", arguments.local, "run all ranks on this machine, without Slurm; needs --plan");
  app.add_option("--trace-step", arguments.trace_step,
                 "write a timeline of this step, for chrome://tracing or Perfetto")
      ->check(CLI::PositiveNumber);
  app.add_option(
         "--lease", arguments.lease_s,
         "seconds until ranks exit when the controller is unreachable (default: 15, or elastic.lease)")
      ->check(cli::within(1.0, 3600.0));
  return cli::run_program(app, argc, argv, [&]() -> int {
    const int code = run(arguments, site_scheduler());
    if (code != kNoRankJoined) return code;
    if (!arguments.local && find_mpirun()) start_without_mpirun(environment, argv);
    return kFailed;
  });
}
