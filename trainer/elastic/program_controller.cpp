#include "trainer/elastic/program_controller.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <ctime>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "planner/history/run_summary.h"
#include "planner/plan/plan_json.h"
#include "planner/plan/plan_nodes.h"
#include "planner/plan/rank_layout.h"
#include "planner/process/subprocess.h"
#include "planner/spec/error.h"
#include "trainer/control/control_server.h"
#include "trainer/control/job_secrets.h"
#include "trainer/elastic/change_log.h"
#include "trainer/elastic/generation_record.h"
#include "trainer/elastic/job_programs.h"
#include "trainer/elastic/next_job.h"
#include "trainer/elastic/next_plan.h"
#include "trainer/elastic/program_generations.h"
#include "trainer/elastic/program_nodes.h"
#include "trainer/elastic/program_record.h"
#include "trainer/elastic/run_setup.h"
#include "trainer/elastic/stop_signs.h"
#include "trainer/launch/programs.h"
#include "trainer/process/signals.h"
#include "trainer/record/event_log.h"
#include "trainer/record/run_directory.h"

namespace sailor {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kJoin_s = 60;          // for the agents of the first plan's nodes
constexpr double kMoreJoin_s = 2;       // for others that join at the same time
constexpr double kChange_s = 60;        // what a change costs, before one was measured
constexpr double kPatientSearch_s = 2;  // of the next plan: no rank waits for it in a step
constexpr double kOfLeavingTime = 0.8;  // part of a leaving node's time that its ranks may use
constexpr double kBeyondGrace_s = 30;   // for killed ranks to end, before their node counts as lost
constexpr double kAgentsExit_s = 5;     // for agents to exit after a stop
constexpr double kProgress_s = 600;     // of a program that does not tell of its steps: then it has saved one
constexpr double kRestExits_s = 3;      // then for what is left

// The output of helper nodes is in files of their own: rank 0 is on a node of the submission if it can be.
void first_on_own_nodes(Plan& plan, const Allocation& allocation) {
  std::stable_partition(plan.pipelines.begin(), plan.pipelines.end(), [&](const PlanPipeline& pipeline) {
    return allocation.find(pipeline.stages.front().node) != nullptr;
  });
}

class ProgramController {
 public:
  ProgramController(const ProgramJob& program, const ControllerOptions& options, Scheduler& scheduler,
                    std::ostream& out);
  int run();
  // After run() has thrown: ends every process of the job.
  void abandon() {
    nodes_.close();
    growth_.release_all();
    end_all_children(kRestExits_s);
  }

 private:
  double now_s() const { return std::chrono::duration<double>(Clock::now() - clock_start_).count(); }
  static Replanner::Options patient(Replanner::Options replanning);
  ProgramGenerations::Limits limits() const;
  ProgramNodes::Owner owner();
  void say(const std::string& text) { out_ << text << std::endl; }
  void begin();
  void joined(const std::string& node);
  void turn(std::chrono::milliseconds wait);
  void receive(const std::string& peer, const ControlMessage& message);
  void leaving(const std::string& node, const Leaving& what);
  void signalled(int number);
  void look_for_losses();
  void look_for_the_first_nodes();
  void look_at_steps();
  void look_for_a_hang();
  void look_for_better_plans();
  void carry_out();
  void end_ranks();
  void make_plan();
  void start_ranks();
  void running(const ProgramChange& change);
  double grace_of(const std::string& node) const;
  void look_for_a_reason_to_stop();
  bool got_further() const;
  int conclude(const EndPrograms& end);

  const ProgramJob& program_;
  const JobSpec& job_;
  const ControllerOptions& options_;
  Scheduler& scheduler_;
  const OwnJob own_job_;
  std::ostream& out_;
  const Clock::time_point clock_start_ = Clock::now();
  RunDirectory directory_;
  SignalDescriptor signals_;
  StopSigns stop_signs_;
  ControlServer server_;
  EventLog events_;
  ChangeLog log_;
  Growth growth_;
  ProgramNodes nodes_;
  NextPlan next_plan_;
  ProgramGenerations generations_;
  ProgramRecord record_;
  std::optional<JobSecretsFile> secrets_;
  Plan plan_;
  std::map<std::string, double> leave_by_s_;
  std::optional<double> look_again_s_;  // for a better plan
  std::vector<double> changes_s_;       // durations of changes, until the ranks ran again
  std::optional<EndPrograms> end_;
  std::optional<Leaving> told_to_leave_;
  std::optional<StopReason> stop_;
  std::vector<std::string> variables_;  // that agents inherit
};

ProgramController::ProgramController(const ProgramJob& program, const ControllerOptions& options,
                                     Scheduler& scheduler, std::ostream& out)
    : program_(program),
      job_(program.job),
      options_(options),
      scheduler_(scheduler),
      own_job_(scheduler.own_job().value_or(OwnJob{})),
      out_(out),
      directory_(options.run_directory),
      signals_({SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2}),
      stop_signs_({.job = options.allocation.job_id,
                   .end_s = options.allocation.end_s,
                   .began_s = std::time(nullptr)},
                  scheduler),
      server_(ControlServer::Options{.lease_s = options.lease_s}),
      events_(directory_),
      log_(events_, [this](const std::string& text) { say(text); }),
      growth_(growth_options(options, own_job_, directory_.log("helpers.log")), events_,
              directory_.log("helpers.log"), [this](const std::string& text) { say(text); }),
      nodes_(owner(), nodes_of_plan(program.plan), server_, growth_, events_),
      next_plan_(job_, program.plan, patient(keep_planning(job_, program.plan, options))),
      generations_(limits()),
      record_(job_, program.plan, program.framework, directory_, options),
      plan_(program.plan) {}

Replanner::Options ProgramController::patient(Replanner::Options replanning) {
  replanning.time.limit_s = std::max(replanning.time.limit_s, kPatientSearch_s);
  return replanning;
}

ProgramGenerations::Limits ProgramController::limits() const {
  ProgramGenerations::Limits limits;
  limits.end_s = job_.trainer.grace_s + kBeyondGrace_s;
  limits.loss_s = options_.lease_s + 2;
  limits.nodes_s = options_.nodes_s;
  limits.restarts = job_.trainer.restarts;
  return limits;
}

ProgramNodes::Owner ProgramController::owner() {
  return {.now_s = [this] { return now_s(); },
          .say = [this](const std::string& text) { say(text); },
          .start_agent = agent_starter(""),
          .joined = [this](const std::string& node) { joined(node); },
          .grown = [this](const SnapshotNode& node) { next_plan_.add_node(node); },
          .lost = [this](const std::string& node,
                         const std::string& why) { generations_.lost(node, why, now_s()); }};
}

void ProgramController::begin() {
  directory_.write_document("plan.json", to_json(plan_) + "\n");
  directory_.write_document("job.yaml", program_.job_text);
  become_subreaper();
  scheduler_.forget_step_defaults();
  write_secrets(secrets_, directory_.path(), server_.endpoint(), /*encrypts_data=*/false, out_);
  for (const auto& [name, value] : agent_environment(options_, own_job_, server_.endpoint())) {
    setenv(name.c_str(), value.c_str(), 1);
    variables_.push_back(name);
  }
  if (own_job_.restarts > 0) scheduler_.give_back_helpers(options_.allocation.job_id);
  nodes_.start_agents();
}

void ProgramController::joined(const std::string& node) {
  if (generations_.generation() == 0 && generations_.state() == ProgramGenerations::State::planning) return;
  events_.write("joined", {{"node", node}});
  look_again_s_ = now_s() + kMoreJoin_s;
}

// Of the first plan.
void ProgramController::look_for_the_first_nodes() {
  if (generations_.generation() > 0 || generations_.state() != ProgramGenerations::State::planning) return;
  const std::set<std::string> usable = nodes_.usable();
  std::vector<std::string> missing;
  for (const std::string& node : RankLayout(plan_).nodes())
    if (!usable.contains(node)) missing.push_back(node);
  if (missing.empty()) {
    log_.begun(next_plan_.replanner().text(), plan_, next_plan_.promised_s(plan_));
    const std::vector<std::string> names = RankLayout(plan_).nodes();
    generations_.begin({names.begin(), names.end()}, now_s());
    start_ranks();
  } else if (now_s() > kJoin_s) {
    log_.begun(next_plan_.replanner().text(), plan_, next_plan_.promised_s(plan_));
    generations_.begin_without(fmt::format("no agent of {} answers", fmt::join(missing, ", ")), now_s());
  }
}

void ProgramController::turn(std::chrono::milliseconds wait) {
  const int wake[] = {signals_.descriptor()};
  for (const ControlServer::Received& received : server_.poll(wait, wake))
    receive(received.peer, received.message);
  for (const int number : signals_.take())
    if (number != SIGCHLD) signalled(number);
  int status = 0;
  for (pid_t pid = waitpid(-1, &status, WNOHANG); pid > 0; pid = waitpid(-1, &status, WNOHANG))
    nodes_.child_ended(pid, status);
}

void ProgramController::receive(const std::string& peer, const ControlMessage& message) {
  if (const auto* hello = std::get_if<Hello>(&message)) return nodes_.hello(peer, *hello);
  const std::optional<std::string> node = nodes_.node_of(peer);
  if (!node) return;
  if (const auto* report = std::get_if<ProgramsReport>(&message)) {
    if (report->exit_code) {
      generations_.ended(*node, report->generation, *report->exit_code, now_s());
    } else {
      generations_.started(*node, report->generation, now_s());
    }
  } else if (const auto* leaves = std::get_if<Leaving>(&message)) {
    leaving(*node, *leaves);
  }
}

void ProgramController::leaving(const std::string& node, const Leaving& what) {
  if (!nodes_.leaving(node, what.grace_s)) return;
  leave_by_s_[node] = now_s() + kOfLeavingTime * what.grace_s;
  const std::string why = fmt::format("{} is leaving the job", node);
  if (!growth_.holds(node) && nodes_.all_are_leaving() &&
      is_ending(scheduler_.find_job(options_.allocation.job_id))) {
    told_to_leave_ = what;
    return;
  }
  if (generations_.running().contains(node)) generations_.change(why, now_s());
}

// Signals that ask a program to save and go on elsewhere are its own to interpret; others end the job.
void ProgramController::signalled(int number) {
  if (asks_to_continue(number)) {
    for (const std::string& node : generations_.running())
      nodes_.send(node, SignalPrograms{node, generations_.generation(), number, std::nullopt});
    return;
  }
  stop_signs_.signalled(number, now_s());
  if (!stop_signs_.impatient()) return;
  for (const std::string& node : generations_.running())
    nodes_.send(node, SignalPrograms{node, generations_.generation(), SIGINT, 0});
}

void ProgramController::look_for_a_reason_to_stop() {
  if (stop_) return;
  stop_ = stop_signs_.reason({.told_to_leave = told_to_leave_, .save_s = job_.trainer.grace_s},
                             std::time(nullptr));
  if (stop_) generations_.stop(stop_->text, now_s());
}

void ProgramController::look_for_losses() {
  for (const ControlServer::Dropped& dropped : server_.take_dropped())
    nodes_.peer_gone(dropped.peer, dropped.reason);
  for (const std::string& peer : server_.silent_peers(options_.lease_s))
    nodes_.peer_gone(peer, fmt::format("no answer from its node for {:.1f} s", server_.silence_s(peer)));
}

void ProgramController::look_at_steps() {
  const std::optional<StepReport> first = record_.look();
  if (!first || generations_.generation() == 1) return;
  const double resumed_s = now_s() - generations_.current().detected_s;
  events_.write(
      "resumed",
      {{"generation", first->generation}, {"step", first->step}, {"to_first_step_s", rounded_s(resumed_s)}});
  say(fmt::format("elastic: step {} is done, {:.1f} s after the change began", first->step, resumed_s));
}

// Also of its start, if an earlier one told of its steps.
void ProgramController::look_for_a_hang() {
  if (!generations_.undisturbed()) return;
  const std::optional<double> quiet_s = record_.hangs_s(job_.trainer.hang_timeout_s);
  if (!quiet_s) return;
  const std::vector<std::string> behind = record_.stragglers();
  events_.write("stall", {{"in_step_s", rounded_s(*quiet_s)}, {"behind", behind}});
  std::string why = fmt::format("no step for {:.0f} s", *quiet_s);
  if (!behind.empty()) why += fmt::format(" ({})", behind.front());
  generations_.hangs(why, now_s() - *quiet_s, now_s());
}

// On nodes that have come, and on others of the cluster.
void ProgramController::look_for_better_plans() {
  using State = ProgramGenerations::State;
  if (look_again_s_ && now_s() > *look_again_s_ && !growth_.awaits(now_s())) {
    look_again_s_.reset();
    if (generations_.state() == State::waiting) {
      generations_.more_nodes(now_s());
    } else if (generations_.undisturbed() && next_plan_.pays_with(plan_, nodes_.gpus())) {
      generations_.change("more GPUs are ready", now_s());
    } else if (generations_.state() == State::running && !generations_.undisturbed()) {
      look_again_s_ = now_s() + kMoreJoin_s;
    }
  }
  if (options_.grow_every_s <= 0 || !generations_.undisturbed() || look_again_s_) return;
  nodes_.give_back_idle(generations_.nodes());
  std::optional<double> iteration_s = record_.iteration_s();
  if (!iteration_s) iteration_s = next_plan_.promised_s(plan_);
  if (!iteration_s || *iteration_s <= 0) return;
  const auto done = std::max(
      record_.last_step(), static_cast<int64_t>((now_s() - generations_.current().running_s) / *iteration_s));
  growth_.tick({.plan = plan_,
                .gpus = nodes_.gpus(),
                .nodes = nodes_.usable().size(),
                .iteration_s = *iteration_s,
                .steps_left = std::max<int64_t>(0, job_.training.steps - done),
                .change_s = changes_s_.empty() ? kChange_s : changes_s_.back()},
               next_plan_.replanner(), now_s());
}

void ProgramController::carry_out() {
  for (auto actions = generations_.take_actions(); !actions.empty(); actions = generations_.take_actions()) {
    for (const ProgramAction& action : actions) {
      if (std::holds_alternative<EndRanks>(action)) {
        end_ranks();
      } else if (const auto* drop = std::get_if<DropNode>(&action)) {
        nodes_.drop(drop->node, "its ranks do not end");
      } else if (std::holds_alternative<PlanRanks>(action)) {
        make_plan();
      } else if (const auto* run = std::get_if<RanksRun>(&action)) {
        running(run->change);
      } else if (const auto* end = std::get_if<EndPrograms>(&action)) {
        end_ = *end;
      }
    }
  }
}

double ProgramController::grace_of(const std::string& node) const {
  const auto leaves = leave_by_s_.find(node);
  if (leaves == leave_by_s_.end()) return job_.trainer.grace_s;
  return std::clamp(leaves->second - now_s(), 0.0, job_.trainer.grace_s);
}

// The file first: who gets the signal reads it.
void ProgramController::end_ranks() {
  const int generation = generations_.generation();
  const std::vector<std::string>& reasons = generations_.current().reasons;
  double within_s = job_.trainer.grace_s;
  for (const std::string& node : generations_.running()) within_s = std::min(within_s, grace_of(node));
  const nlohmann::ordered_json change = {
      {"generation", generation}, {"why", reasons}, {"within_s", within_s}, {"time", std::time(nullptr)}};
  directory_.write_document("change.json", change.dump(2) + "\n");
  for (const std::string& node : generations_.running())
    nodes_.send(node, SignalPrograms{node, generation, job_.trainer.signal, within_s});
  say(fmt::format("elastic: {}: the ranks are told to end within {:.0f} s", fmt::join(reasons, "; "),
                  within_s));
  log_.interrupted({generation, 0, false}, reasons);
}

void ProgramController::make_plan() {
  const double start_s = now_s();
  Replanned made = next_plan_.make(plan_, nodes_.gpus());
  const double plan_s = now_s() - start_s;
  if (made.plan) {
    first_on_own_nodes(*made.plan, options_.allocation);
    const std::vector<std::string> names = RankLayout(*made.plan).nodes();
    next_plan_.take(made, std::exchange(plan_, *made.plan));
    directory_.write_document("plan.json", to_json(plan_) + "\n");
    if (!planning_of(directory_.path()).empty())
      directory_.write_document("planning/cluster.yaml", to_yaml(made.nodes));
    generations_.planned({names.begin(), names.end()}, plan_s, now_s());
    log_.sent(generations_.generation(), generations_.current().reasons, made, next_plan_.promised_s(plan_),
              plan_s, 0);
    return start_ranks();
  }
  log_.no_plan(made.text, plan_s, options_.nodes_s);
  generations_.no_plan(made.text, now_s());
}

void ProgramController::start_ranks() {
  leave_by_s_.clear();
  const int generation = generations_.generation();
  if (generation > 1) record_.begin_generation(generation, plan_);
  const NodePrograms programs = node_programs(scheduler_, {.plan = plan_,
                                                           .order = program_.framework.rank_order,
                                                           .command = program_.command(plan_),
                                                           .allocation = options_.allocation,
                                                           .plan_file = directory_.file("plan.json"),
                                                           .generation = generation,
                                                           .change_file = directory_.file("change.json"),
                                                           .steps_directory = record_.steps_directory()});
  for (const std::string& node : generations_.nodes())
    nodes_.send(node, StartPrograms{node, generation, programs.command, programs.environment});
}

void ProgramController::running(const ProgramChange& change) {
  const int generation = generations_.generation();
  server_.set_generation(generation);
  nlohmann::ordered_json details = {
      {"generation", generation}, {"why", change.reasons}, {"ranks", num_ranks(plan_)}};
  if (generation > 1) {
    changes_s_.push_back(change.running_s - change.detected_s);
    details["cleanup_s"] = rounded_s(change.ended_s - change.detected_s);
    details["plan_s"] = rounded_s(change.plan_s);
    details["resume_s"] = rounded_s(changes_s_.back());
    details["failed"] = change.failed;
  }
  events_.write("running", details);
  say(generation > 1 ? fmt::format("elastic: {} ranks run again, {:.1f} s after the change began",
                                   num_ranks(plan_), changes_s_.back())
                     : fmt::format("sailor: {} ranks of {} run on {} nodes", num_ranks(plan_),
                                   job_.trainer.command.front(), generations_.nodes().size()));
}

// A job that does not must not be continued again and again.
bool ProgramController::got_further() const {
  return record_.last_step() > 0 ? record_.last_step() > record_.first_step() : now_s() > kProgress_s;
}

int ProgramController::conclude(const EndPrograms& end) {
  RunSummary summary;
  summary.job_id = options_.allocation.job_id;
  summary.moved = options_.moved;
  summary.status = end.error.empty() ? "finished" : "failed";
  summary.error = end.error;
  int exit_code = end.exit_code;
  if (stop_ && end.error == stop_->text)
    exit_code = end_stopped_job(
        {*stop_, summary.job_id, own_job_.restarts, got_further(), directory_.path(), variables_}, scheduler_,
        summary);
  out_ << record_.conclude(summary);
  log_.ended(generations_.generation(), summary.status, summary.error);
  std::string text = summary.status == "finished"    ? "all ranks have ended"
                     : summary.status == "continued" ? "training continues in job " + summary.next_job
                                                     : summary.error;
  if (!changes_s_.empty()) {
    std::sort(changes_s_.begin(), changes_s_.end());
    text += fmt::format("; {} generations, ranks ran again after {:.1f} s (median)",
                        generations_.generation(), changes_s_[changes_s_.size() / 2]);
  }
  if (generations_.restarts() > 0)
    text += fmt::format(", {} restart{} of a failed program", generations_.restarts(),
                        generations_.restarts() == 1 ? "" : "s");
  say("sailor: " + text);
  return exit_code;
}

int ProgramController::run() {
  begin();
  while (!end_) {
    turn(std::chrono::milliseconds(100));
    look_for_losses();
    look_for_the_first_nodes();
    look_for_a_reason_to_stop();
    generations_.tick(now_s());
    carry_out();
    nodes_.tick();
    look_at_steps();
    look_for_a_hang();
    look_for_better_plans();
    carry_out();
  }
  nodes_.close();
  growth_.release_all();
  server_.broadcast(Stop{end_->exit_code, end_->error});
  const double since_s = now_s();
  while (!child_processes().empty() && now_s() - since_s < kAgentsExit_s) turn(std::chrono::milliseconds(50));
  end_all_children(kRestExits_s);
  return conclude(*end_);
}

}  // namespace

int run_elastic_programs(const ProgramJob& program, const ControllerOptions& options, Scheduler& scheduler,
                         std::ostream& out) {
  ProgramController controller(program, options, scheduler, out);
  try {
    return controller.run();
  } catch (...) {
    controller.abandon();
    throw;
  }
}

}  // namespace sailor
