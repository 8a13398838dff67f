#include "trainer/elastic/controller.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <optional>
#include <vector>

#include "planner/history/run_history.h"
#include "planner/history/run_summary.h"
#include "planner/plan/plan_json.h"
#include "planner/process/seconds_since.h"
#include "planner/process/subprocess.h"
#include "planner/spec/error.h"
#include "planner/spec/text_file.h"
#include "trainer/control/control_server.h"
#include "trainer/control/job_secrets.h"
#include "trainer/elastic/generations.h"
#include "trainer/elastic/job_programs.h"
#include "trainer/elastic/next_job.h"
#include "trainer/elastic/run_setup.h"
#include "trainer/elastic/stop_signs.h"
#include "trainer/elastic/supervisor.h"
#include "trainer/launch/agent.h"
#include "trainer/launch/launcher.h"
#include "trainer/process/signals.h"
#include "trainer/record/metrics_writer.h"
#include "trainer/record/rank_trace.h"
#include "trainer/record/run_directory.h"
#include "trainer/record/settings_table.h"

namespace sailor {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kOrderlyEnd_s = 2;   // time for agents and ranks to exit after a stop
constexpr double kChildrenEnd_s = 3;  // then for the remaining children: keepers wait for Slurm

// On imagined nodes, if it is not placed.
Plan on_nodes(Plan plan) {
  place_on_imagined_nodes(plan);
  return plan;
}

class Controller {
 public:
  Controller(const JobSpec& job, const Plan& plan, const ControllerOptions& options, Scheduler& scheduler,
             std::ostream& out)
      : job_(job),
        plan_(options.elastic ? on_nodes(plan) : plan),
        options_(options),
        scheduler_(scheduler),
        own_job_(scheduler.own_job().value_or(OwnJob{})),
        out_(out),
        directory_(options.run_directory),
        signals_({SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2}),
        stop_signs_(stop_options(), scheduler),
        saved_at_start_(saved_steps()),
        server_(ControlServer::Options{.bind_address = options.local ? "127.0.0.1" : "*",
                                       .lease_s = options.lease_s}),
        supervisor_(job, plan),
        facts_{job.training.steps, job.training.global_batch * job.model.sequence, options.step_flops,
               options.peak_flops},
        metrics_(directory_, facts_,
                 job.metrics.tensorboard.empty()
                     ? ""
                     : relative_to_file(job.metrics.tensorboard, options.job_directory + "/job.yaml")),
        generations_(job, plan_, generation_options(), server_, supervisor_, directory_, out) {}

  int run(const std::string& job_text);
  // After run() has thrown: ends every process of the job.
  void abandon() {
    generations_.close();
    end_all_children(kChildrenEnd_s);
  }

 private:
  Generations::Options generation_options() const;
  StopSigns::Options stop_options() const;
  int64_t saved_steps() const { return options_.saved_steps ? options_.saved_steps() : 0; }
  void launch();
  void turn(std::chrono::milliseconds wait);
  void reap();
  void show_steps();
  bool must_end();
  void look_for_a_reason_to_stop();
  bool has_stopped();
  void end_everything(const Stop& stop);
  int conclude();
  int conclude_stop(RunSummary& summary);

  const JobSpec& job_;
  const Plan plan_;  // of the first generation
  const ControllerOptions& options_;
  Scheduler& scheduler_;
  const OwnJob own_job_;
  std::ostream& out_;
  RunDirectory directory_;
  SignalDescriptor signals_;
  StopSigns stop_signs_;
  const int64_t saved_at_start_;
  ControlServer server_;
  Supervisor supervisor_;
  const StepFacts facts_;
  MetricsWriter metrics_;
  Generations generations_;
  std::optional<JobSecretsFile> secrets_;
  pid_t launcher_ = -1;
  Clock::time_point started_ = Clock::now();
  std::vector<std::string> launch_variables_;
  std::optional<StopReason> stop_;
  std::optional<double> save_by_s_;  // after started_; set while the ranks of a job that stops save
  bool no_children_ = false;
};

Generations::Options Controller::generation_options() const {
  const Replanner::Options replanning = keep_planning(job_, on_nodes(plan_), options_);
  Generations::Options generations{.lease_s = options_.lease_s, .nodes_s = options_.nodes_s};
  generations.members.node = node_name();
  if (!options_.elastic) return generations;
  generations.replanning = replanning;
  generations.members.start_process = start_joining_rank;
  if (options_.local) return generations;
  generations.members.start_agent = agent_starter(directory_.log("launch.log"));
  generations.growth = growth_options(options_, own_job_, directory_.log("helpers.log"));
  generations.job_must_end = [this] { return is_ending(scheduler_.find_job(options_.allocation.job_id)); };
  return generations;
}

StopSigns::Options Controller::stop_options() const {
  StopSigns::Options options{.job = options_.allocation.job_id,
                             .began_s = std::time(nullptr),
                             .checkpoint_bytes = options_.checkpoint_bytes};
  if (options_.saved_steps) options.end_s = options_.allocation.end_s;
  return options;
}

void Controller::launch() {
  become_subreaper();
  scheduler_.forget_step_defaults();
  write_secrets(secrets_, directory_.path(), server_.endpoint(), options_.encrypts_data, out_);
  std::map<std::string, std::string> environment = agent_environment(options_, own_job_, server_.endpoint());
  environment["SAILOR_TRACE_STEP"] = std::to_string(options_.trace_step);
  for (const auto& [name, value] : environment) {
    setenv(name.c_str(), value.c_str(), 1);  // for processes that this one starts later
    launch_variables_.push_back(name);
  }
  launcher_ = start_ranks({.plan = plan_,
                           .local = options_.local,
                           .nodes = options_.allocation.nodes,
                           .environment = std::move(environment),
                           .log_file = directory_.log("launch.log")});
}

// Reaps children. Each is a rank of this node, the launcher, or the Slurm step of an agent.
void Controller::reap() {
  int status = 0;
  pid_t pid;
  while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
    if (pid == launcher_) {
      launcher_ = -1;
      if (status == 0) continue;
      const std::string reason = last_line(directory_.log("launch.log"));
      supervisor_.fail(fmt::format("starting the ranks failed: the launcher {}{}{} (log: {})",
                                   describe_wait_status(status), reason.empty() ? "" : ": ", reason,
                                   directory_.log("launch.log")));
    } else {
      generations_.child_ended(pid, status);
    }
  }
  no_children_ = pid < 0;
}

void Controller::turn(std::chrono::milliseconds wait) {
  const int wake[] = {signals_.descriptor()};
  for (const ControlServer::Received& received : server_.poll(wait, wake))
    generations_.receive(received.peer, received.message);
  for (const int number : signals_.take()) {
    if (number != SIGCHLD) stop_signs_.signalled(number, seconds_since(started_));
  }
  reap();
}

void Controller::show_steps() {
  for (const auto& progress : supervisor_.progress().take()) {
    if (const Note* note = std::get_if<Note>(&progress)) {
      // Steps before a checkpoint are not trained again, so their metrics must last as long.
      if (note->save_s) metrics_.sync();
      out_ << note->text << std::endl;
      continue;
    }
    const StepReport& step = std::get<StepReport>(progress);
    out_ << step_line(step, facts_) << std::endl;
    metrics_.write(step);
  }
  if (const auto trace = supervisor_.progress().take_trace())
    directory_.write_document(fmt::format("trace-step-{}.json", options_.trace_step),
                              rank_trace(generations_.plan(), *trace));
}

bool Controller::must_end() {
  if (supervisor_.all_finished()) return true;
  look_for_a_reason_to_stop();
  if (stop_) return has_stopped();
  if (!supervisor_.all_joined() && seconds_since(started_) > options_.join_timeout_s)
    supervisor_.fail(fmt::format("ranks {} did not join within {:.0f} s; see {}",
                                 fmt::join(supervisor_.missing_ranks(), ", "), options_.join_timeout_s,
                                 directory_.path() + "/logs"));
  if (no_children_) generations_.no_children();
  generations_.tick();
  return supervisor_.failure().decided(seconds_since(started_));
}

void Controller::look_for_a_reason_to_stop() {
  if (stop_) return;
  const TrainingProgress& progress = supervisor_.progress();
  stop_ = stop_signs_.reason({.told_to_leave = generations_.told_to_leave(),
                              .longest_step_s = generations_.longest_step_s(),
                              .save_s = progress.save_s()},
                             std::time(nullptr));
  if (!stop_ || !options_.saved_steps || progress.steps_done() == 0) return;
  save_by_s_ = seconds_since(started_) + stop_->within_s;
  out_ << stop_->text << ": saving the training state" << std::endl;
  generations_.stop_and_save(stop_->within_s);
}

bool Controller::has_stopped() {
  if (!save_by_s_ || stop_signs_.impatient()) return true;
  generations_.tick();
  const double now_s = seconds_since(started_);
  return generations_.stopped() || now_s > *save_by_s_ || supervisor_.failure().decided(now_s);
}

void Controller::end_everything(const Stop& stop) {
  supervisor_.told_to_end();
  generations_.close();
  server_.broadcast(stop);
  const auto start = Clock::now();
  while (!no_children_ && seconds_since(start) < kOrderlyEnd_s) turn(std::chrono::milliseconds(50));
  end_all_children(kChildrenEnd_s);
}

int Controller::conclude() {
  RunSummary summary = supervisor_.summarize();
  summary.job_id = options_.allocation.job_id;
  summary.moved = options_.moved;
  summary.emulated = options_.emulated;
  summary.catalog = options_.catalog;
  summary.profiles = options_.profiles;
  summary.unigram_entropy = options_.unigram_entropy;
  if (summary.measured_iteration_s) summary.mfu = facts_.mfu(*summary.measured_iteration_s);
  int exit_code = kFailed;
  if (supervisor_.all_finished()) {
    summary.status = "finished";
    exit_code = kDone;
  } else if (stop_ && !(save_by_s_ && supervisor_.failure().text())) {
    exit_code = conclude_stop(summary);
  } else {
    summary.status = "failed";
    summary.error = supervisor_.failure().text().value_or("");
    const auto missing = static_cast<int>(supervisor_.missing_ranks().size());
    if (missing == num_ranks(plan_)) exit_code = kNoRankJoined;
  }
  directory_.write_document("summary.json", summary_json(summary));
  generations_.log_end(summary.status, summary.error);
  directory_.write_document("run.json", to_json(measured_run(summary, job_, generations_.plan()), 2));
  out_ << summary_text(summary) << "files: " << directory_.path() << std::endl;
  if (exit_code != kDone)
    std::cerr << fmt::format("sailor: {} after {} of {} steps\n", summary.error,
                             supervisor_.progress().last_step(), job_.training.steps);
  return exit_code;
}

int Controller::conclude_stop(RunSummary& summary) {
  summary.error = stop_->text;
  const int64_t saved = saved_steps();
  if (saved > 0) summary.error += fmt::format("; the state after step {} is saved", saved);
  return end_stopped_job({*stop_, options_.allocation.job_id, own_job_.restarts, saved > saved_at_start_,
                          directory_.path(), launch_variables_},
                         scheduler_, summary);
}

int Controller::run(const std::string& job_text) {
  directory_.remove("summary.json");  // of a previous start in the same directory
  supervisor_.progress().continue_from(read_steps(directory_.path()));
  directory_.write_document("plan.json", to_json(plan_) + "\n");
  directory_.write_document("job.yaml", job_text);
  out_ << settings_table(job_, plan_, options_.data, options_.unigram_entropy, options_.emulated,
                         directory_.path())
       << std::flush;
  if (own_job_.restarts > 0 && !options_.local)  // left by a previous start
    scheduler_.give_back_helpers(options_.allocation.job_id);
  launch();
  bool announced = false;
  do {
    turn(std::chrono::milliseconds(200));
    if (!announced && supervisor_.all_joined()) {
      out_ << fmt::format("{} ranks joined after {:.1f} s", num_ranks(plan_), seconds_since(started_))
           << std::endl;
      announced = true;
    }
    show_steps();
  } while (!must_end());
  end_everything(
      Stop{supervisor_.all_finished() ? kDone : kFailed, supervisor_.failure().text().value_or("")});
  show_steps();
  return conclude();
}

}  // namespace

int run_controller(const JobSpec& job, const std::string& job_text, const Plan& plan,
                   const ControllerOptions& options, Scheduler& scheduler, std::ostream& out) {
  Controller controller(job, plan, options, scheduler, out);
  try {
    return controller.run(job_text);
  } catch (...) {
    controller.abandon();
    throw;
  }
}

}  // namespace sailor
