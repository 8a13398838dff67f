#include "trainer/elastic/generations.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>

#include "planner/plan/plan_json.h"

namespace sailor {
namespace {

constexpr double kTogether_s = 1.5;         // processes that become silent within this time are lost together
constexpr double kSettle_s = 0.5;           // for others that join at the same time
constexpr double kIdleHelper_s = 15;        // before an unused helper node is released
constexpr int kMostInVain = 20;             // consecutive changes without a new step
constexpr int kMeasuredSteps = 10;          // whose median is the iteration time
constexpr char kInitialValues[] = "start";  // Started::state_from

Reconfiguration::Limits limits(const Generations::Options& options) {
  Reconfiguration::Limits limits;
  limits.idle_s = options.lease_s + 2;
  limits.nodes_s = options.nodes_s;
  return limits;
}

GenerationRank address_of(const JobProcess& process) {
  return {process.hello.node, process.hello.pid, process.hello.address, process.hello.port};
}

}  // namespace

Generations::Generations(const JobSpec& job, const Plan& plan, Options options, ControlServer& server,
                         Supervisor& supervisor, const RunDirectory& directory, std::ostream& out)
    : job_(job),
      plan_(plan),
      options_(std::move(options)),
      server_(server),
      supervisor_(supervisor),
      directory_(directory),
      out_(out),
      events_(directory, options_.replanning.has_value()),
      log_(events_, owner().say),
      growth_(options_.growth, events_, directory.log("helpers.log"), owner().say),
      members_(options_.members, owner(), server, growth_, events_),
      reconfiguration_(limits(options_)) {
  if (options_.replanning) next_plan_.emplace(job, plan, *options_.replanning);
}

Membership::Owner Generations::owner() {
  return {
      .now_s = [this] { return now_s(); },
      .say = [this](const std::string& text) { out_ << text << std::endl; },
      .joined = [this](int process) { joined(process); },
      .grown = [this](const SnapshotNode& node) { next_plan_->add_node(node); },
      .lost = [this](int process, const std::string& why) { reconfiguration_.lost(process, why, now_s()); },
      .unreachable =
          [this](int process, int generation, const std::string& text, int suspect) {
            reconfiguration_.broken(process, generation, text, suspect, now_s());
          }};
}

LossSigns& Generations::signs() {
  if (goes_on()) return members_;
  return supervisor_;
}

void Generations::close() {
  members_.close();
  growth_.release_all();
}

void Generations::joined(int process) {
  if (reconfiguration_.generation() == 0) return begin_when_complete();
  events_.write("joined", identity(members_.roster().at(process)));
  reconfiguration_.joined(process, now_s());
  look_again_s_ = now_s() + kSettle_s;
}

void Generations::begin_when_complete() {
  std::vector<int> ids;
  for (int rank = 0; rank < num_ranks(plan_); ++rank) {
    const std::optional<int> id = members_.roster().of_rank(rank);
    if (!id) return;
    ids.push_back(*id);
  }
  reconfiguration_.begin(ids, now_s());
  if (next_plan_) log_.begun(next_plan_->replanner().text(), plan_, next_plan_->promised_s(plan_));
}

void Generations::receive(const std::string& peer, const ControlMessage& message) {
  const Roster& roster = members_.roster();
  if (const auto* hello = std::get_if<Hello>(&message)) {
    supervisor_.receive(peer, message);
    return members_.hello(peer, *hello);
  }
  if (const auto node = roster.node_of_agent(peer)) {
    if (const auto* ended = std::get_if<ProcessEnded>(&message))
      signs().process_ended(*node, ended->pid, ended->wait_status);
    if (const auto* leaves = std::get_if<Leaving>(&message)) leaving(*node, *leaves);
    return;
  }
  const auto* failure = std::get_if<Failure>(&message);
  if (failure && failure->peer_lost) return signs().unreachable(peer, *failure);
  if (failure && failure->device_failed) return signs().device_failed(peer, *failure);
  supervisor_.receive(peer, message);
  const std::optional<int> id = roster.find_peer(peer);
  if (id && !roster.at(*id).gone) about_training(*id, message);
}

void Generations::about_training(int process, const ControlMessage& message) {
  // Ranks begin the first generation by themselves, maybe before the hello of another has arrived.
  const int number = std::max(1, reconfiguration_.generation());
  if (const auto* step = std::get_if<StepReport>(&message)) {
    if (step->generation != number) return;
    steps_.reported(step->step, step->step_s);
    reconfiguration_.step_done();
    log_.step_done(*step, now_s());
  } else if (const auto* begins = std::get_if<Started>(&message)) {
    if (begins->generation != number) return;
    if (begins_again(*begins)) return;
    log_.started(process, *begins);
    reconfiguration_.started(process, number, now_s());
  } else if (const auto* idle = std::get_if<Idle>(&message)) {
    if (goes_on() || stopping_) reconfiguration_.idle(process, idle->generation, now_s());
  }
}

// The state is lost with those who had it. Training from the beginning is only a way to go on while no
// checkpoint was due: otherwise the job ends, before a step is repeated. Other ranks may have done steps of
// this generation already.
bool Generations::begins_again(const Started& begins) {
  const bool saves = !job_.checkpoint.directory.empty();
  if (begins.state_from != kInitialValues ||
      steps_.furthest_before() <= (saves ? job_.checkpoint.every_steps : 0))
    return false;
  supervisor_.fail(fmt::format(
      "the state after step {} is lost: no process that is left has all of it, and there is no checkpoint{}; "
      "submit the job again to train from the beginning",
      steps_.furthest_before(),
      saves ? ""
            : " (set checkpoint.directory and checkpoint.every_steps, and a loss costs the steps since the "
              "last one)"));
  return true;
}

void Generations::child_ended(int64_t pid, int wait_status) {
  signs().process_ended(options_.members.node, pid, wait_status);
  signs().child_ended(pid, wait_status);
}

void Generations::leaving(const std::string& node, const Leaving& what) {
  if (!next_plan_ || what.continues) {
    if (!told_to_leave_) told_to_leave_ = what;
    return;
  }
  if (!members_.leaving(node, what.grace_s)) return;
  leave_by_s_[node] = now_s() + what.grace_s / 2;
  const bool maybe_all = !growth_.holds(node) && members_.all_are_leaving() && options_.job_must_end;
  if (maybe_all && options_.job_must_end()) told_to_leave_ = what;
  leave_when_running();
}

// A change in progress may have begun before a node was told to leave.
void Generations::leave_when_running() {
  if (leave_by_s_.empty() || reconfiguration_.state() != Reconfiguration::State::running) return;
  const std::set<int>& working = reconfiguration_.working();
  for (const std::string& node : members_.nodes_of({working.begin(), working.end()})) {
    const auto leaves = leave_by_s_.find(node);
    if (leaves == leave_by_s_.end()) continue;
    // It is unknown whether the other nodes will get the same signal.
    const bool save = !job_.checkpoint.directory.empty();
    return reconfiguration_.change(fmt::format("{} is leaving the job", node), steps_.steps_done() + 1, save,
                                   std::max(0.0, leaves->second - now_s()), now_s());
  }
  leave_by_s_.clear();
  members_.dismiss_leaving();
}

void Generations::stop_and_save(double within_s) {
  stopping_ = true;
  members_.start_nobody();
  stop_by_s_ = now_s() + within_s;
  events_.write("told_to_go", {{"within_s", within_s}});
  stop_when_running();
}

void Generations::stop_when_running() {
  if (!stopping_ || reconfiguration_.state() != Reconfiguration::State::running) return;
  reconfiguration_.change("the job must end", steps_.steps_done() + 1, !job_.checkpoint.directory.empty(),
                          stop_by_s_ - now_s(), now_s());
}

bool Generations::stopped() const {
  using State = Reconfiguration::State;
  const State state = reconfiguration_.state();
  return stopping_ && ((state == State::planning && (saving_ || !next_plan_)) || state == State::waiting ||
                       state == State::ended);
}

void Generations::tick() {
  look_for_losses();
  if (goes_on()) {
    look_for_a_stall();
    members_.tick(reconfiguration_.state() == Reconfiguration::State::waiting);  // no training to disturb
    look_for_a_better_plan();
  }
  reconfiguration_.tick(now_s());
  stop_when_running();
  leave_when_running();
  carry_out();
  if (goes_on()) {
    look_at_a_longer_search();
    look_for_growth();
  }
}

void Generations::look_for_losses() {
  for (const ControlServer::Dropped& dropped : server_.take_dropped())
    signs().peer_dropped(dropped.peer, dropped.reason);
  if (server_.silent_peers(options_.lease_s).empty()) return;
  // The processes of a lost node become silent one after the other. They need only one change, for the loss
  // of the node.
  std::vector<std::string> silent = server_.silent_peers(std::max(1.0, options_.lease_s - kTogether_s));
  std::stable_partition(silent.begin(), silent.end(), [this](const std::string& peer) {
    return members_.roster().node_of_agent(peer).has_value();
  });
  for (const std::string& peer : silent) signs().peer_silent(peer, server_.silence_s(peer));
}

// All ranks have been inside a step for longer than a step takes: one hangs, and an interrupt finds out
// which.
void Generations::look_for_a_stall() {
  if (reconfiguration_.state() != Reconfiguration::State::running) return;
  double least_s = 1e9;
  for (const int id : reconfiguration_.working())
    least_s = std::min(least_s, server_.in_step_s(members_.roster().at(id).peer));
  if (!steps_.stalls(least_s, now_s() - reconfiguration_.since_s(), options_.lease_s)) return;
  const std::string why = fmt::format("no rank has finished its step for {:.0f} s", least_s);
  events_.write("stall", {{"in_step_s", rounded_s(least_s)}});
  reconfiguration_.change(why, 0, false, 0, now_s());
}

// Training is undisturbed, and no newly joined process is about to cause a change.
bool Generations::at_rest() const {
  return reconfiguration_.state() == Reconfiguration::State::running && !stopping_ && !look_again_s_;
}

void Generations::look_for_a_better_plan() {
  if (!look_again_s_ || stopping_ || now_s() < *look_again_s_) return;
  if (reconfiguration_.state() != Reconfiguration::State::running || members_.others_come()) return;
  look_again_s_.reset();
  if (next_plan_->pays_with(plan_, members_.gpus_of(members_.usable())))
    change_to_a_better_plan("more GPUs are ready");
}

void Generations::look_at_a_longer_search() {
  if (!next_plan_->wants_longer_search()) return;
  if (!at_rest()) return next_plan_->cancel_search();
  if (log_.awaits_first_step() || members_.others_come()) return;
  const auto found = next_plan_->search_longer(plan_, members_.gpus_of(members_.usable()), log_.change_s(),
                                               job_.training.steps - steps_.steps_done());
  if (!found) return;
  log_.searched(*found);
  if (found->pays) change_to_a_better_plan("a longer search found a better plan");
}

// Releases unused nodes, and searches for more.
void Generations::look_for_growth() {
  if (options_.growth.every_s <= 0 || !at_rest() || log_.awaits_first_step() || members_.others_come())
    return;
  if (next_plan_->wants_longer_search()) return;  // it may find a plan for nodes that are not used now
  const std::set<int>& working = reconfiguration_.working();
  for (const std::string& node :
       growth_.idle(members_.nodes_of({working.begin(), working.end()}), kIdleHelper_s, now_s()))
    members_.give_back(node, "the plan does not use it", true);
  std::vector<double> steps_s = supervisor_.progress().steps_s();
  if (steps_s.size() < kMeasuredSteps) return;
  const auto median = steps_s.end() - kMeasuredSteps + kMeasuredSteps / 2;
  std::nth_element(steps_s.end() - kMeasuredSteps, median, steps_s.end());
  const std::vector<int> usable = members_.usable();
  growth_.tick({.plan = plan_,
                .gpus = members_.gpus_of(usable),
                .nodes = members_.nodes_of(usable).size(),
                .iteration_s = *median,
                .steps_left = job_.training.steps - steps_.steps_done(),
                .change_s = log_.change_s()},
               next_plan_->replanner(), now_s());
}

void Generations::change_to_a_better_plan(const std::string& why) {
  // Where the ranks drop their state for another plan as large as this one.
  const bool save =
      !job_.checkpoint.directory.empty() && !next_plan_->replanner().without_room(plan_, plan_).empty();
  reconfiguration_.change(why, steps_.steps_done() + 1, save,
                          std::max(options_.lease_s, 5 * steps_.longest_step_s()), now_s());
}

void Generations::carry_out() {
  for (auto actions = reconfiguration_.take_actions(); !actions.empty();
       actions = reconfiguration_.take_actions()) {
    for (const ReconfigurationAction& action : actions) {
      if (const auto* interrupt = std::get_if<SendInterrupt>(&action)) {
        for (const int id : reconfiguration_.working())
          server_.send(members_.roster().at(id).peer,
                       Interrupt{interrupt->generation, interrupt->after_step, interrupt->save});
        saving_ = interrupt->save;
        log_.interrupted(*interrupt, reconfiguration_.current().reasons);
      } else if (const auto* drop = std::get_if<DropProcess>(&action)) {
        members_.drop(drop->process, drop->why);
      } else if (std::holds_alternative<MakePlan>(action)) {
        make_plan();
      } else if (const auto* running = std::get_if<NowRunning>(&action)) {
        now_running(running->change);
      } else if (const auto* end = std::get_if<EndJob>(&action)) {
        supervisor_.fail(end->error);
      }
    }
  }
}

void Generations::make_plan() {
  if (!next_plan_ || (stopping_ && saving_)) return;
  const double start_s = now_s();
  const Replanned made = next_plan_->make(plan_, members_.gpus_of(members_.usable()));
  const std::optional<std::vector<int>> ids = made.plan ? members_.processes_of(*made.plan) : std::nullopt;
  const double plan_s = now_s() - start_s;
  if (!ids) {
    log_.no_plan(made.text, plan_s, options_.nodes_s);
    return reconfiguration_.no_plan(made.text, now_s());
  }
  reconfiguration_.planned(*ids, givers_beside(*ids), plan_s, now_s());
  if (reconfiguration_.state() == Reconfiguration::State::starting) send_generation(made, *ids, plan_s);
}

// Processes with state that those of the new plan may need, and which are not in the plan; also on leaving
// nodes.
std::vector<int> Generations::givers_beside(const std::vector<int>& ids) const {
  std::vector<int> givers;
  for (const int id : members_.roster().alive()) {
    if (holders_.contains(id) && std::find(ids.begin(), ids.end(), id) == ids.end()) givers.push_back(id);
  }
  return givers;
}

void Generations::send_generation(const Replanned& made, const std::vector<int>& ids, double plan_s) {
  const Roster& roster = members_.roster();
  const std::vector<std::string>& reasons = reconfiguration_.current().reasons;
  const int number = reconfiguration_.generation();
  // Without checkpoints their state would be lost: then the change is attempted as it is.
  const std::set<int> dropping = job_.checkpoint.directory.empty()
                                     ? std::set<int>()
                                     : next_plan_->replanner().without_room(plan_, *made.plan);
  next_plan_->take(made, std::exchange(plan_, *made.plan));
  Generation generation{.number = number,
                        .base = reconfiguration_.base(),
                        .plan = plan_,
                        .scope = fmt::format("generation-{}", number),
                        .why = fmt::format("{}", fmt::join(reasons, "; "))};
  std::vector<Hello> hellos;
  for (const int id : ids) {
    hellos.push_back(roster.at(id).hello);
    generation.ranks.push_back(address_of(roster.at(id)));
    generation.ranks.back().drops_state = dropping.contains(static_cast<int>(generation.ranks.size()) - 1);
  }
  for (const int id : givers_beside(ids)) generation.ranks.push_back(address_of(roster.at(id)));
  members_.assign(ids);
  holders_.insert(ids.begin(), ids.end());
  for (const int id : roster.alive()) server_.send(roster.at(id).peer, generation);
  supervisor_.begin_generation(number, plan_, hellos);
  directory_.write_document("plan.json", to_json(plan_) + "\n");
  if (!planning_of(directory_.path()).empty())
    directory_.write_document("planning/cluster.yaml", to_yaml(made.nodes));
  log_.sent(number, reasons, made, next_plan_->promised_s(plan_), plan_s, dropping.size());
  reconfiguration_.set_idle_limit(std::max(options_.lease_s + 2, 2 * steps_.longest_step_s()));
  steps_.begin_generation(plan_.prediction ? plan_.prediction->iteration_s : 0);
}

void Generations::now_running(const GenerationChange& change) {
  const int number = reconfiguration_.generation();
  server_.set_generation(number);
  holders_ = reconfiguration_.working();
  steps_.running(log_.running(number, change, members_.roster(), holders_, steps_.steps_done()));
  if (number > 1) steps_.changed();
  if (steps_.changes_in_vain() > kMostInVain)
    supervisor_.fail(fmt::format("{} consecutive changes without progress beyond step {}; the last one: {}",
                                 steps_.changes_in_vain(), steps_.furthest(),
                                 fmt::join(change.reasons, "; ")));
}

void Generations::log_end(const std::string& status, const std::string& error) {
  log_.ended(reconfiguration_.generation(), status, error);
}

}  // namespace sailor
