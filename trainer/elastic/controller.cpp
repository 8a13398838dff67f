#include "trainer/elastic/controller.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <iostream>
#include <optional>

#include "planner/plan/plan_json.h"
#include "planner/spec/error.h"
#include "planner/spec/text_file.h"
#include "trainer/elastic/agent.h"
#include "trainer/elastic/control_server.h"
#include "trainer/elastic/launcher.h"
#include "trainer/elastic/measured_run.h"
#include "trainer/elastic/metrics_writer.h"
#include "trainer/elastic/rank_trace.h"
#include "trainer/elastic/run_directory.h"
#include "trainer/elastic/signals.h"
#include "trainer/elastic/subprocess.h"
#include "trainer/elastic/supervisor.h"

namespace sailor {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kCauseWait_s = 2;   // how long an echo waits for its cause
constexpr double kOrderlyEnd_s = 2;  // how long agents and ranks get to end by themselves after a stop

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

class Controller {
 public:
  Controller(const JobSpec& job, const Plan& plan, const ControllerOptions& options, std::ostream& out)
      : job_(job),
        plan_(plan),
        options_(options),
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
        node_(node_name()) {}

  int run(const std::string& job_text);

 private:
  void launch();
  void turn(std::chrono::milliseconds wait);
  void reap();
  void show_steps();
  bool must_end();
  void end_everything(const Stop& stop);
  int conclude();

  const JobSpec& job_;
  const Plan& plan_;
  const ControllerOptions& options_;
  std::ostream& out_;
  RunDirectory directory_;
  SignalDescriptor signals_;
  ControlServer server_;
  Supervisor supervisor_;
  const StepFacts facts_;
  MetricsWriter metrics_;
  std::string node_;
  pid_t launcher_ = -1;
  Clock::time_point started_ = Clock::now();
  std::optional<Clock::time_point> failed_at_;
  std::optional<int> signal_;
  bool no_children_ = false;
};

void Controller::launch() {
  become_subreaper();
  clean_step_environment();
  std::map<std::string, std::string> environment = server_.endpoint().to_environment();
  environment["SAILOR_RUN_DIRECTORY"] = directory_.path();
  environment["SAILOR_JOB_DIRECTORY"] = options_.job_directory;
  environment["SAILOR_TRACE_STEP"] = std::to_string(options_.trace_step);
  launcher_ = start_ranks({.plan = plan_,
                           .local = options_.local,
                           .nodes = options_.allocation.nodes,
                           .environment = std::move(environment),
                           .log_file = directory_.log("launch.log")});
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
    } else {
      supervisor_.process_ended(node_, pid, status);
      supervisor_.child_ended(pid, status);
    }
  }
  no_children_ = pid < 0;
}

void Controller::turn(std::chrono::milliseconds wait) {
  const int wake[] = {signals_.descriptor()};
  for (const ControlServer::Received& received : server_.poll(wait, wake))
    supervisor_.receive(received.peer, received.message);
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
                              rank_trace(plan_, *trace));
}

bool Controller::must_end() {
  if (signal_ || supervisor_.all_finished()) return true;
  if (!supervisor_.all_joined() && since(started_) > options_.join_timeout_s)
    supervisor_.fail(fmt::format("ranks {} did not join within {:.0f} s; see {}",
                                 fmt::join(supervisor_.missing_ranks(), ", "), options_.join_timeout_s,
                                 directory_.path() + "/logs"));
  for (const std::string& peer : server_.silent_peers(options_.lease_s))
    supervisor_.peer_silent(peer, options_.lease_s);
  if (no_children_) supervisor_.fail("every process of the job is gone");
  if (supervisor_.failure() && !failed_at_) failed_at_ = Clock::now();
  return supervisor_.cause_known() || (failed_at_ && since(*failed_at_) > kCauseWait_s);
}

void Controller::end_everything(const Stop& stop) {
  supervisor_.told_to_end();
  server_.broadcast(stop);
  const auto start = Clock::now();
  while (!no_children_ && since(start) < kOrderlyEnd_s) turn(std::chrono::milliseconds(50));
  end_all_children(1);
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
  directory_.write_document("run.json", to_json(measured_run(summary, job_, plan_), 2));
  out_ << summary_text(summary) << "files: " << directory_.path() << std::endl;
  if (exit_code != kDone)
    std::cerr << fmt::format("sailor: {} after {} of {} steps\n", summary.error, supervisor_.last_step(),
                             job_.training.steps);
  return exit_code;
}

int Controller::run(const std::string& job_text) {
  directory_.write_document("plan.json", to_json(plan_) + "\n");
  directory_.write_document("job.yaml", job_text);
  out_ << settings_table(job_, plan_, options_.data, options_.unigram_entropy, options_.emulated,
                         directory_.path())
       << std::flush;
  launch();
  bool announced = false;
  do {
    turn(std::chrono::milliseconds(200));
    if (!announced && supervisor_.all_joined()) {
      out_ << fmt::format("{} ranks joined after {:.1f} s", num_ranks(plan_), since(started_)) << std::endl;
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
                   const ControllerOptions& options, std::ostream& out) {
  Controller controller(job, plan, options, out);
  try {
    return controller.run(job_text);
  } catch (...) {
    end_all_children(1);
    throw;
  }
}

}  // namespace sailor
