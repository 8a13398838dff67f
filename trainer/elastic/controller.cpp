#include "trainer/elastic/controller.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <iostream>
#include <optional>

#include "planner/history/run_summary.h"
#include "planner/plan/plan_json.h"
#include "planner/process/seconds_since.h"
#include "planner/process/subprocess.h"
#include "planner/spec/error.h"
#include "planner/spec/text_file.h"
#include "trainer/control/control_server.h"
#include "trainer/control/data_secret.h"
#include "trainer/elastic/generations.h"
#include "trainer/elastic/supervisor.h"
#include "trainer/launch/agent.h"
#include "trainer/launch/helper_job.h"
#include "trainer/launch/launcher.h"
#include "trainer/process/program_path.h"
#include "trainer/process/signals.h"
#include "trainer/record/metrics_writer.h"
#include "trainer/record/rank_trace.h"
#include "trainer/record/run_directory.h"
#include "trainer/record/settings_table.h"

namespace sailor {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kCauseWait_s = 2;    // how long an echo waits for its cause
constexpr double kOrderlyEnd_s = 2;   // how long agents and ranks get to end by themselves after a stop
constexpr double kChildrenEnd_s = 3;  // then for whatever still runs here: keepers wait for Slurm
constexpr int kLeave_s = 20;          // for saving after a SIGTERM: Slurm kills after 30

// What an elastic job goes on after.
bool is_loss(const ControlMessage& message) {
  const Failure* failure = std::get_if<Failure>(&message);
  return std::holds_alternative<ProcessEnded>(message) || (failure && failure->peer_lost);
}

class Controller {
 public:
  Controller(const JobSpec& job, const Plan& plan, const ControllerOptions& options, Scheduler& scheduler,
             std::ostream& out)
      : job_(job),
        plan_(plan),
        options_(options),
        scheduler_(scheduler),
        own_job_(scheduler.own_job().value_or(OwnJob{})),
        out_(out),
        directory_(options.run_directory),
        signals_({SIGCHLD, SIGTERM, SIGINT, SIGHUP}),
        server_(ControlServer::Options{.bind_address = options.local ? "127.0.0.1" : "*",
                                       .lease_s = options.lease_s}),
        supervisor_(job, plan),
        facts_{job.training.steps, job.training.global_batch * job.model.sequence, options.step_flops,
               options.peak_flops},
        metrics_(directory_, facts_,
                 job.metrics.tensorboard.empty()
                     ? ""
                     : relative_to_file(job.metrics.tensorboard, options.job_directory + "/job.yaml")),
        node_(node_name()) {
    const Replanner::Options replanning = keep_planning();
    if (!options.elastic) return;
    place_on_imagined_nodes(plan_);
    generations_.emplace(
        job_, plan_,
        Generations::Options{
            .lease_s = options.lease_s,
            .nodes_s = options.nodes_s,
            .replanning = replanning,
            .node = node_,
            .start_process = [](const StartProcess& what) { return start_joining_rank(what); },
            .start_agent = agent_starter(),
            .growth = growth_options()},
        server_, supervisor_, directory_, out_);
  }

  int run(const std::string& job_text);
  // When run() has thrown: nothing of the job is to be left.
  void abandon() {
    if (generations_) generations_->close();
    end_all_children(kChildrenEnd_s);
  }

 private:
  Replanner::Options keep_planning() const;
  void launch();
  std::function<pid_t(const std::string&)> agent_starter() const;
  Growth::Options growth_options() const;
  void turn(std::chrono::milliseconds wait);
  void reap();
  void show_steps();
  bool must_end();
  bool leaves_in_order();
  void end_everything(const Stop& stop);
  int conclude();
  const Plan& plan() const { return generations_ ? generations_->plan() : plan_; }
  bool survives_losses() const { return generations_ && generations_->begun(); }

  const JobSpec& job_;
  Plan plan_;  // that the job begins with
  const ControllerOptions& options_;
  Scheduler& scheduler_;
  const OwnJob own_job_;
  std::ostream& out_;
  RunDirectory directory_;
  SignalDescriptor signals_;
  ControlServer server_;
  Supervisor supervisor_;
  const StepFacts facts_;
  MetricsWriter metrics_;
  std::string node_;
  std::optional<Generations> generations_;  // of an elastic job
  pid_t launcher_ = -1;
  Clock::time_point started_ = Clock::now();
  std::optional<Clock::time_point> failed_at_;
  std::optional<int> signal_;
  std::optional<Clock::time_point> leave_by_;  // of a job that saves its state before it goes
  bool no_children_ = false;
};

// Writes planning/, and lets the job plan again with what is there: whatever becomes of the site's files, all
// predictions of a run rest on the same figures.
Replanner::Options Controller::keep_planning() const {
  PlanningFiles files = options_.planning;
  try {
    Plan placed = plan_;
    place_on_imagined_nodes(placed);
    if (files.empty()) files = Replanner(job_, placed, options_.replanning).planning_files();
  } catch (const InputError&) {
    // Stages share a GPU: no cluster has such nodes, and nothing can be planned on them.
  }
  write_planning(directory_.path(), files);
  Replanner::Options replanning = options_.replanning;
  if (!files.empty()) replanning.site_config = planning_of(directory_.path()) + "/sailor.yaml";
  return replanning;
}

void Controller::launch() {
  become_subreaper();
  scheduler_.forget_step_defaults();
  std::map<std::string, std::string> environment = server_.endpoint().to_environment();
  environment["SAILOR_DATA_SECRET"] = make_data_secret();
  if (generations_) environment["SAILOR_ELASTIC"] = "1";
  environment["SAILOR_NODES"] = to_text(options_.allocation.nodes);
  environment["SAILOR_JOB_ID"] = options_.allocation.job_id;
  environment["SAILOR_RESTART_COUNT"] = std::to_string(own_job_.restarts);
  environment["SAILOR_RUN_DIRECTORY"] = directory_.path();
  environment["SAILOR_JOB_DIRECTORY"] = options_.job_directory;
  environment["SAILOR_TRACE_STEP"] = std::to_string(options_.trace_step);
  for (const auto& [name, value] : environment) {
    if (generations_) setenv(name.c_str(), value.c_str(), 1);  // for what this process starts later
  }
  launcher_ = start_ranks({.plan = plan_,
                           .local = options_.local,
                           .nodes = options_.allocation.nodes,
                           .environment = std::move(environment),
                           .log_file = directory_.log("launch.log")});
}

std::function<pid_t(const std::string&)> Controller::agent_starter() const {
  if (options_.local) return nullptr;
  return [log = directory_.log("launch.log")](const std::string& node) {
    return spawn({program_path("sailor-agent"), "remote-shell", node, "true"},
                 {.environment = {}, .output_file = log});
  };
}

Growth::Options Controller::growth_options() const {
  if (options_.local || options_.grow_every_s <= 0) return {};
  const Allocation& allocation = options_.allocation;
  Growth::Options growth{.every_s = options_.grow_every_s, .most_nodes = options_.most_nodes};
  if (allocation.end_s) growth.end_s = static_cast<double>(*allocation.end_s);
  std::vector<std::string> look = {program_path("sailor-cluster"), "--yaml", "--config",
                                   options_.replanning.site_config};
  look.insert(look.end(), options_.node_limits.begin(), options_.node_limits.end());
  growth.look_command = [look, end_s = allocation.end_s] {
    std::vector<std::string> command = look;
    if (end_s)
      command.push_back(fmt::format("--time={}s", std::max<int64_t>(60, *end_s - std::time(nullptr))));
    return command;
  };
  const HelperRequest request{.main_job = allocation.job_id,
                              .node = "",
                              .partition = "",
                              .end_s = allocation.end_s,
                              .account = own_job_.account,
                              .qos = own_job_.qos,
                              .reservation = own_job_.reservation};
  growth.start_keeper = [request, log = directory_.log("helpers.log")](const SnapshotNode& node) {
    HelperRequest one = request;
    one.node = node.name;
    one.partition = node.partition;
    return spawn(keeper_command(program_path("sailor-agent"), one),
                 {.environment = {{"SAILOR_KEEPER_PARENT", std::to_string(getpid())}}, .output_file = log});
  };
  return growth;
}

// Everything that has ended is a rank of this node, the launcher, or a Slurm step around an agent.
void Controller::reap() {
  int status = 0;
  pid_t pid;
  while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
    if (pid == launcher_) {
      launcher_ = -1;
      if (status == 0) continue;
      const std::string reason = last_line(directory_.log("launch.log"));
      supervisor_.fail(fmt::format("starting the ranks failed: mpirun {}{}{} (all of it: {})",
                                   describe_wait_status(status), reason.empty() ? "" : ": ", reason,
                                   directory_.log("launch.log")));
    } else if (survives_losses()) {
      generations_->process_ended(node_, pid, status);
      generations_->child_ended(pid, status);
    } else {
      supervisor_.process_ended(node_, pid, status);
      supervisor_.child_ended(pid, status);
    }
  }
  no_children_ = pid < 0;
}

void Controller::turn(std::chrono::milliseconds wait) {
  const int wake[] = {signals_.descriptor()};
  for (const ControlServer::Received& received : server_.poll(wait, wake)) {
    if (generations_) generations_->receive(received.peer, received.message);
    if (!survives_losses() || !is_loss(received.message))
      supervisor_.receive(received.peer, received.message);
  }
  for (const int number : signals_.take()) {
    if (number != SIGCHLD && !signal_) signal_ = number;
  }
  reap();
}

void Controller::show_steps() {
  for (const auto& progress : supervisor_.take_progress()) {
    if (const Note* note = std::get_if<Note>(&progress)) {
      out_ << note->text << std::endl;
      continue;
    }
    const StepReport& step = std::get<StepReport>(progress);
    out_ << step_line(step, facts_) << std::endl;
    metrics_.write(step);
  }
  if (const auto trace = supervisor_.take_trace())
    directory_.write_document(fmt::format("trace-step-{}.json", options_.trace_step),
                              rank_trace(plan(), *trace));
}

bool Controller::must_end() {
  if (supervisor_.all_finished()) return true;
  if (signal_) return !leaves_in_order();
  if (!supervisor_.all_joined() && seconds_since(started_) > options_.join_timeout_s)
    supervisor_.fail(fmt::format("ranks {} did not join within {:.0f} s; see {}",
                                 fmt::join(supervisor_.missing_ranks(), ", "), options_.join_timeout_s,
                                 directory_.path() + "/logs"));
  if (survives_losses()) {
    generations_->tick();
    if (generations_->error()) supervisor_.fail(*generations_->error());
    return supervisor_.failure().has_value();
  }
  for (const std::string& peer : server_.silent_peers(options_.lease_s))
    supervisor_.peer_silent(peer, options_.lease_s);
  for (const ControlServer::Dropped& dropped : server_.take_dropped())
    supervisor_.fail("the control channel: " + dropped.reason);
  if (no_children_) supervisor_.fail("every process of the job is gone");
  if (supervisor_.failure() && !failed_at_) failed_at_ = Clock::now();
  return supervisor_.cause_known() || (failed_at_ && seconds_since(*failed_at_) > kCauseWait_s);
}

// An elastic job that is told to go by SIGTERM saves its state first, as long as it is given time.
bool Controller::leaves_in_order() {
  if (*signal_ != SIGTERM || !survives_losses() || job_.checkpoint.directory.empty()) return false;
  if (!leave_by_) {
    leave_by_ = Clock::now() + std::chrono::seconds(kLeave_s);
    generations_->stop_and_save(kLeave_s);
  }
  generations_->tick();
  return !generations_->stopped() && Clock::now() < *leave_by_;
}

void Controller::end_everything(const Stop& stop) {
  supervisor_.told_to_end();
  if (generations_) generations_->close();
  server_.broadcast(stop);
  const auto start = Clock::now();
  while (!no_children_ && seconds_since(start) < kOrderlyEnd_s) turn(std::chrono::milliseconds(50));
  end_all_children(kChildrenEnd_s);
}

int Controller::conclude() {
  RunSummary summary = supervisor_.summarize();
  summary.job_id = options_.allocation.job_id;
  summary.emulated = options_.emulated;
  summary.catalog = options_.catalog;
  summary.profiles = options_.profiles;
  summary.unigram_entropy = options_.unigram_entropy;
  if (summary.measured_iteration_s) summary.mfu = facts_.mfu(*summary.measured_iteration_s);
  int exit_code = kFailed;
  if (supervisor_.all_finished()) {
    summary.status = "finished";
    exit_code = kDone;
  } else if (signal_) {
    summary.status = "cancelled";
    summary.error = fmt::format("stopped by signal {} ({})", *signal_, strsignal(*signal_));
  } else {
    summary.status = "failed";
    summary.error = supervisor_.failure().value_or("");
  }
  directory_.write_document("summary.json", summary_json(summary));
  if (generations_) generations_->log_end(summary.status, summary.error);
  directory_.write_document("run.json", to_json(measured_run(summary, job_, plan()), 2));
  out_ << summary_text(summary) << "files: " << directory_.path() << std::endl;
  if (exit_code != kDone)
    std::cerr << fmt::format("sailor: {} after {} of {} steps\n", summary.error, supervisor_.last_step(),
                             job_.training.steps);
  return exit_code;
}

int Controller::run(const std::string& job_text) {
  directory_.remove("summary.json");  // of a run before this one, in the same directory
  directory_.write_document("plan.json", to_json(plan_) + "\n");
  directory_.write_document("job.yaml", job_text);
  out_ << settings_table(job_, plan_, options_.data, options_.unigram_entropy, options_.emulated,
                         directory_.path())
       << std::flush;
  if (own_job_.restarts > 0 && !options_.local)  // what an earlier start left behind
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
  end_everything(Stop{supervisor_.all_finished() ? kDone : kFailed, supervisor_.failure().value_or("")});
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
