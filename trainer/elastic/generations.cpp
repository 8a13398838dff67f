#include "trainer/elastic/generations.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>

#include "planner/plan/plan_json.h"
#include "planner/plan/rank_layout.h"
#include "planner/process/subprocess.h"

namespace sailor {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kTogether_s = 1.5;   // who falls silent within that time fell silent together
constexpr double kSettle_s = 0.5;     // for others that come at the same time
constexpr double kIdleHelper_s = 15;  // until a helper's node is given back that no plan came to use
constexpr int kMostInVain = 20;       // changes in a row without a step that was never done before
constexpr double kSecondLook_s = 10;  // of a search while training goes on
constexpr int kMeasuredSteps = 10;    // whose median says how long an iteration takes

Reconfiguration::Limits limits(const Generations::Options& options) {
  Reconfiguration::Limits limits;
  limits.idle_s = options.lease_s + 2;
  limits.nodes_s = options.nodes_s;
  return limits;
}

// Seconds of an iteration; null where there are no profiles.
Json promised_s(const Replanner& replanner, const Plan& plan) {
  const std::optional<PlanPrediction> prediction = replanner.prediction_of(plan);
  return prediction ? Json(prediction->iteration_s) : Json();
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
      events_(directory),
      replanner_(job, plan, options_.replanning),
      growth_(options_.growth, events_, directory.log("helpers.log"),
              [this](const std::string& text) { say(text); }),
      second_look_(kSecondLook_s),
      reconfiguration_(limits(options_)) {}

void Generations::close() {
  closed_ = true;
  growth_.release_all();
}

void Generations::say(const std::string& text) {
  out_ << text << std::endl;
}

void Generations::hello(const std::string& peer, const Hello& hello) {
  if (hello.role == ControlRole::agent) return agent_joined(peer, hello);
  const std::optional<int> id = roster_.joined(peer, hello);
  if (!id) {
    events_.write("refused", {{"node", hello.node}, {"pid", hello.pid}, {"why", "its GPU has a process"}});
    return server_.drop(peer);
  }
  starts_.joined(hello.place, hello.gpu);
  if (!begun()) return begin_when_complete();
  events_.write("joined", identity(roster_.at(*id)));
  reconfiguration_.joined(*id, now_s());
  look_again_s_ = now_s() + kSettle_s;
}

// An agent that comes later than the job's first ones is that of a node that came back.
void Generations::agent_joined(const std::string& peer, const Hello& hello) {
  roster_.agent_joined(peer, hello);
  if (closed_) return;
  if (const auto helper = growth_.came(hello.node, now_s())) return helper_came(*helper);
  if (!lost_nodes_.back(hello.node)) return;
  events_.write("returned", {{"node", hello.node}});
  for (const auto& [place, gpu] : roster_.empty_gpus_on(hello.node)) start_process({hello.node, place, gpu});
}

void Generations::helper_came(const SnapshotNode& node) {
  // It may have been ours before, until Slurm took it from the job because it was down.
  leaving_.erase(node.name);
  lost_nodes_.back(node.name);
  replanner_.add_node(node);
  for (const int gpu : node.free_gpus) start_process({node.name, node.name, gpu});
}

// Before anything that they say later is heard.
void Generations::begin_when_complete() {
  std::vector<int> ids(static_cast<size_t>(num_ranks(plan_)), -1);
  for (const int id : roster_.alive()) {
    const int rank = roster_.at(id).rank;
    if (rank >= 0 && rank < num_ranks(plan_)) ids[static_cast<size_t>(rank)] = id;
  }
  if (std::find(ids.begin(), ids.end(), -1) != ids.end()) return;
  reconfiguration_.begin(ids, now_s());
  events_.write("planning", {{"how", replanner_.text()}});
  events_.write("generation", {{"generation", 1},
                               {"why", Json::array({"the job starts"})},
                               {"plan", summary(plan_)},
                               {"predicted_iteration_s", promised_s(replanner_, plan_)}});
}

void Generations::receive(const std::string& peer, const ControlMessage& message) {
  if (const auto* said = std::get_if<Hello>(&message)) return hello(peer, *said);
  if (const auto node = roster_.node_of_agent(peer)) {
    if (const auto* ended = std::get_if<ProcessEnded>(&message))
      process_ended(*node, ended->pid, ended->wait_status);
    if (const auto* leaves = std::get_if<Leaving>(&message)) leaving(*node, leaves->grace_s);
    return;
  }
  const std::optional<int> id = roster_.find_peer(peer);
  if (!id || roster_.at(*id).gone) return;
  if (const auto* step = std::get_if<StepReport>(&message)) {
    step_reported(*step);
  } else if (const auto* failure = std::get_if<Failure>(&message)) {
    if (failure->peer_lost)
      reconfiguration_.broken(*id, failure->generation,
                              fmt::format("{}: {}", roster_.at(*id).describe(), failure->text),
                              process_of_rank(failure->lost_peer), now_s());
  } else if (const auto* idle = std::get_if<Idle>(&message)) {
    reconfiguration_.idle(*id, idle->generation, now_s());
  } else if (const auto* begins = std::get_if<Started>(&message)) {
    started(*id, *begins);
  }
}

// Of the present generation; -1 = none.
int Generations::process_of_rank(int rank) const {
  for (const int id : reconfiguration_.working()) {
    if (rank >= 0 && roster_.at(id).rank == rank) return id;
  }
  return -1;
}

void Generations::step_reported(const StepReport& report) {
  if (report.generation != reconfiguration_.generation()) return;
  if (steps_.reported(report.step, report.step_s)) in_vain_ = 0;
  reconfiguration_.step_done();
  if (!wait_first_step_) return;
  events_.write("resumed", {{"generation", report.generation},
                            {"step", report.step},
                            {"to_first_step_s", rounded_s(now_s() - *wait_first_step_)}});
  wait_first_step_.reset();
}

void Generations::started(int process, const Started& started) {
  if (started.generation != reconfiguration_.generation()) return;
  record_.started(process, started);
  reconfiguration_.started(process, started.generation, now_s());
}

// Processes that a plan may use.
std::vector<int> Generations::usable() const {
  std::vector<int> ids;
  for (const int id : roster_.alive()) {
    if (!leaving_.contains(roster_.at(id).hello.node)) ids.push_back(id);
  }
  return ids;
}

Replanned Generations::plan_for(const std::vector<int>& processes) const {
  return replanner_.plan_for(gpus_of(processes), plan_, runners_up_);
}

std::vector<LiveGpu> Generations::gpus_of(const std::vector<int>& processes) const {
  std::vector<LiveGpu> gpus;
  for (const int id : processes) gpus.push_back({roster_.at(id).hello.place, roster_.at(id).hello.gpu});
  std::sort(gpus.begin(), gpus.end());
  return gpus;
}

std::optional<std::vector<int>> Generations::processes_of(const Plan& plan) const {
  std::map<std::pair<std::string, int>, int> by_gpu;
  for (const int id : usable()) by_gpu[{roster_.at(id).hello.place, roster_.at(id).hello.gpu}] = id;
  std::vector<int> ids;
  const RankLayout layout(plan);
  for (const RankSlot& slot : layout.slots()) {
    auto it = by_gpu.find({slot.node, slot.gpu});
    if (it == by_gpu.end()) return std::nullopt;
    ids.push_back(it->second);
  }
  return ids;
}

void Generations::lose(int process, const std::string& why, double silent_s) {
  JobProcess& one = roster_.at(process);
  if (one.gone || closed_) return;
  one.gone = true;
  server_.drop(one.peer);
  Json details = identity(one);
  details["rank"] = one.rank;
  details["why"] = why;
  details["silent_s"] = rounded_s(silent_s);
  events_.write("lost", details);
  say(fmt::format("elastic: lost {}: {}", one.describe(), why));
  reconfiguration_.lost(process, fmt::format("{}: {}", one.describe(), why), now_s());
}

void Generations::lose_node(const std::string& node, const std::string& why, double silent_s) {
  if (closed_) return;
  roster_.agent_gone(node);
  if (growth_.holds(node)) {
    growth_.release(node, why, now_s());
  } else {
    lost_nodes_.lost(node, now_s());
  }
  for (const int id : roster_.alive_on(node)) lose(id, why, silent_s);
}

// Makes sure that a process that is not counted any more is not there any more.
void Generations::end_process(int process) {
  const Hello& hello = roster_.at(process).hello;
  if (const auto agent = roster_.agent_of(hello.node)) {
    server_.send(*agent, EndProcess{hello.node, hello.pid});
  } else if (hello.node == options_.node) {
    kill(static_cast<pid_t>(hello.pid), SIGKILL);
  }
}

void Generations::process_ended(const std::string& node, int64_t pid, int wait_status) {
  const std::optional<int> id = roster_.find(node, pid);
  if (!id || closed_) return;
  lose(*id, describe_wait_status(wait_status), server_.silence_s(roster_.at(*id).peer));
  const Hello& hello = roster_.at(*id).hello;
  restart(node, hello.place, hello.gpu);
}

void Generations::restart(const std::string& node, const std::string& place, int gpu) {
  if (stopping_ || closed_ || leaving_.contains(node)) return;
  const auto agent = roster_.agent_of(node);
  if (!agent && node != options_.node) return;
  const StartProcess what{node, place, gpu};
  const double wait_s = starts_.wanted(what, now_s());
  if (wait_s <= 0) return start_process(what);
  const std::string why = "its processes end again and again";
  events_.write("restart_later", {{"node", place}, {"gpu", gpu}, {"in_s", rounded_s(wait_s)}, {"why", why}});
  say(fmt::format("elastic: GPU {} of {} is left alone for {:.0f} s: {}", gpu, place, wait_s, why));
}

void Generations::start_what_waits() {
  if (stopping_) return;
  for (const StartProcess& what : starts_.never_came(now_s())) {
    events_.write("restart_failed", {{"node", what.place}, {"gpu", what.gpu}});
    restart(what.node, what.place, what.gpu);
  }
  // Without any plan there is nothing to be disturbed.
  const bool hurry = reconfiguration_.state() == Reconfiguration::State::waiting;
  for (const StartProcess& what : starts_.due(now_s(), hurry)) {
    const bool reachable = roster_.agent_of(what.node) || what.node == options_.node;
    if (reachable && !leaving_.contains(what.node)) start_process(what);
  }
}

void Generations::start_process(const StartProcess& what) {
  if (const auto agent = roster_.agent_of(what.node)) {
    server_.send(*agent, what);
  } else {
    options_.start_process(what);
  }
  starts_.started(what, now_s());
  events_.write("restart", {{"node", what.place}, {"gpu", what.gpu}});
}

// The job keeps the nodes that it lost: when they are well again, or only their agent had died, they are
// used.
void Generations::look_for_returned_nodes() {
  if (!options_.start_agent || stopping_) return;
  for (const std::string& node : lost_nodes_.due(now_s())) {
    if (!leaving_.contains(node)) lost_nodes_.starting(node, options_.start_agent(node));
  }
}

void Generations::child_ended(int64_t pid, int wait_status) {
  if (const auto node = growth_.child_ended(static_cast<pid_t>(pid), wait_status, now_s())) {
    const std::string why = fmt::format("the helper job of {} {}", *node, describe_wait_status(wait_status));
    roster_.agent_gone(*node);
    for (const int id : roster_.alive_on(*node)) lose(id, why, 0);
    return;
  }
  lost_nodes_.child_ended(static_cast<pid_t>(pid), now_s());
  if (const auto node = roster_.node_of_step(pid))
    lose_node(*node,
              fmt::format("the Slurm step of the agent on {} {}", *node, describe_wait_status(wait_status)),
              0);
}

void Generations::leaving(const std::string& node, double grace_s) {
  if (!leaving_.insert(node).second) return;
  events_.write("leaving", {{"node", node}, {"grace_s", grace_s}});
  say(fmt::format("elastic: {} is told to go within {:.0f} s", node, grace_s));
  // Nobody knows whether the other nodes are about to hear the same.
  const bool save = !job_.checkpoint.directory.empty();
  reconfiguration_.change(fmt::format("{} is told to go", node), steps_.reachable_by_all(), save, grace_s / 2,
                          now_s());
}

void Generations::stop_and_save(double within_s) {
  stopping_ = true;
  events_.write("told_to_go", {{"within_s", within_s}});
  reconfiguration_.change("the job is told to go", steps_.reachable_by_all(),
                          !job_.checkpoint.directory.empty(), within_s, now_s());
}

bool Generations::stopped() const {
  using State = Reconfiguration::State;
  return stopping_ &&
         (reconfiguration_.state() == State::planning || reconfiguration_.state() == State::waiting ||
          reconfiguration_.state() == State::ended);
}

void Generations::look_for_silence() {
  if (server_.silent_peers(options_.lease_s).empty()) return;
  // The processes of a node that went away fall silent one after the other: one change is enough.
  std::vector<std::string> silent = server_.silent_peers(std::max(1.0, options_.lease_s - kTogether_s));
  for (const std::string& peer : silent) {
    const double silent_s = server_.silence_s(peer);
    if (const auto node = roster_.node_of_agent(peer)) {
      server_.drop(peer);
      lose_node(*node, fmt::format("no sign of life of its node for {:.1f} s", silent_s), silent_s);
    }
  }
  for (const std::string& peer : silent) {
    const std::optional<int> id = roster_.find_peer(peer);
    if (!id || roster_.at(*id).gone) continue;
    const double silent_s = server_.silence_s(peer);
    lose(*id, fmt::format("no sign of life for {:.1f} s", silent_s), silent_s);
    end_process(*id);
  }
}

// Everybody is inside a step, for longer than steps take: somebody hangs, and an interrupt finds out who.
void Generations::look_for_a_stall() {
  if (reconfiguration_.state() != Reconfiguration::State::running) return;
  double least_s = 1e9;
  for (const int id : reconfiguration_.working())
    least_s = std::min(least_s, server_.in_step_s(roster_.at(id).peer));
  if (!steps_.stalls(least_s, now_s() - reconfiguration_.since_s(), options_.lease_s)) return;
  const std::string why = fmt::format("no rank has finished its step for {:.0f} s", least_s);
  events_.write("stall", {{"in_step_s", rounded_s(least_s)}});
  reconfiguration_.change(why, 0, false, 0, now_s());
}

// Who is about to come is waited for, as long as it takes a process to start.
bool Generations::others_come() {
  return growth_.awaits(now_s()) || starts_.any_expected(now_s());
}

// Once all is at rest: what the plan does not use goes back, and more is looked for.
void Generations::look_for_growth() {
  if (options_.growth.every_s <= 0 || stopping_ || closed_ || look_again_s_ || wait_first_step_) return;
  if (reconfiguration_.state() != Reconfiguration::State::running || others_come()) return;
  std::set<std::string> used;
  for (const int id : reconfiguration_.working()) used.insert(roster_.at(id).hello.node);
  for (const std::string& node : growth_.idle(used, kIdleHelper_s, now_s()))
    give_back(node, "the plan does not use it");
  std::vector<double> steps_s = supervisor_.steps_s();
  if (steps_s.size() < kMeasuredSteps) return;
  steps_s.erase(steps_s.begin(), steps_s.end() - kMeasuredSteps);
  std::nth_element(steps_s.begin(), steps_s.begin() + kMeasuredSteps / 2, steps_s.end());
  Growth::Training training{.plan = plan_,
                            .gpus = gpus_of(usable()),
                            .nodes = 0,
                            .iteration_s = steps_s[kMeasuredSteps / 2],
                            .steps_left = job_.training.steps - steps_.steps_done(),
                            .change_s = change_s_};
  std::set<std::string> nodes;
  for (const int id : usable()) nodes.insert(roster_.at(id).hello.node);
  training.nodes = nodes.size();
  growth_.tick(training, replanner_, now_s());
}

// Its processes are spare: nobody misses them.
void Generations::give_back(const std::string& node, const std::string& why) {
  for (const int id : roster_.alive_on(node)) {
    JobProcess& one = roster_.at(id);
    server_.send(one.peer, Stop{0, why});
    one.gone = true;
    reconfiguration_.lost(id, why, now_s());
  }
  if (const auto agent = roster_.agent_of(node)) server_.send(*agent, Stop{0, why});
  roster_.agent_gone(node);
  growth_.release(node, why, now_s());
}

void Generations::look_for_a_better_plan() {
  if (!look_again_s_ || stopping_ || now_s() < *look_again_s_) return;
  if (reconfiguration_.state() != Reconfiguration::State::running) return;
  if (others_come()) return;
  look_again_s_.reset();
  const Replanned replanned = plan_for(usable());
  if (!replanned.plan || !replanner_.better(*replanned.plan, plan_)) return;
  change_to_a_better_plan("more GPUs are ready");
}

// A plan that was made in a hurry is held against one that was not.
void Generations::look_twice() {
  if (!second_look_.wanted()) return;
  if (reconfiguration_.state() != Reconfiguration::State::running || stopping_ || closed_ || look_again_s_)
    return second_look_.cancel();
  if (wait_first_step_ || others_come()) return;
  std::optional<Replanned> found = second_look_.tick({gpus_of(usable()), plan_, runners_up_}, replanner_);
  if (!found) return;
  Plan in_force = plan_;  // with what it promises, which a plan that was cut down does not say
  in_force.prediction = replanner_.prediction_of(plan_);
  const std::optional<PlanPrediction> then = replanner_.prediction_of(*found->plan);
  if (!in_force.prediction || !then) return;
  const double now_s = in_force.prediction->iteration_s;
  const bool pays =
      replanner_.better(*found->plan, in_force) &&
      (replanner_.job().objective.expense() ||
       pays_in_time(now_s, then->iteration_s, change_s_, job_.training.steps - steps_.steps_done(), {}));
  events_.write("second_look", {{"plan", summary(*found->plan)},
                                {"iteration_s", rounded_s(now_s)},
                                {"then_s", rounded_s(then->iteration_s)},
                                {"changes", pays}});
  if (!pays) return;
  next_ = std::move(found);
  change_to_a_better_plan("a longer search found a better plan");
}

void Generations::change_to_a_better_plan(const std::string& why) {
  reconfiguration_.change(why, steps_.reachable_by_all(), false,
                          std::max(options_.lease_s, 5 * steps_.longest_step_s()), now_s());
}

void Generations::tick() {
  for (const ControlServer::Dropped& dropped : server_.take_dropped()) {
    events_.write("dropped", {{"why", dropped.reason}});
    if (const auto node = roster_.node_of_agent(dropped.peer)) lose_node(*node, dropped.reason, 0);
    if (const auto id = roster_.find_peer(dropped.peer); id && !roster_.at(*id).gone) {
      lose(*id, dropped.reason, 0);
      end_process(*id);
    }
  }
  look_for_silence();
  look_for_a_stall();
  look_for_returned_nodes();
  start_what_waits();
  look_for_a_better_plan();
  reconfiguration_.tick(now_s());
  carry_out();
  look_twice();
  look_for_growth();
}

void Generations::carry_out() {
  for (auto actions = reconfiguration_.take_actions(); !actions.empty();
       actions = reconfiguration_.take_actions()) {
    for (const ReconfigurationAction& action : actions) {
      if (const auto* interrupted = std::get_if<SendInterrupt>(&action)) {
        interrupt(*interrupted);
      } else if (const auto* drop = std::get_if<DropProcess>(&action)) {
        const double silent_s = server_.silence_s(roster_.at(drop->process).peer);
        server_.send(roster_.at(drop->process).peer, Stop{1, drop->why});
        lose(drop->process, drop->why, silent_s);
        end_process(drop->process);
      } else if (std::holds_alternative<MakePlan>(action)) {
        make_plan();
      } else if (const auto* running = std::get_if<NowRunning>(&action)) {
        now_running(running->change);
      } else if (const auto* end = std::get_if<EndJob>(&action)) {
        error_ = end->error;
      }
    }
  }
}

void Generations::interrupt(const SendInterrupt& what) {
  for (const int id : reconfiguration_.working())
    server_.send(roster_.at(id).peer, Interrupt{what.generation, what.after_step, what.save});
  events_.write("interrupt", {{"generation", what.generation},
                              {"after_step", what.after_step},
                              {"why", reconfiguration_.current().reasons}});
}

void Generations::make_plan() {
  if (stopping_) return;
  const double start_s = now_s();
  Replanned replanned;
  if (next_ && processes_of(*next_->plan))
    replanned = std::move(*next_);
  else
    replanned = plan_for(usable());
  next_.reset();
  const std::optional<std::vector<int>> ids = replanned.plan ? processes_of(*replanned.plan) : std::nullopt;
  const double plan_s = now_s() - start_s;
  if (!ids) {
    events_.write("no_plan", {{"why", replanned.text}, {"plan_s", rounded_s(plan_s)}});
    say(fmt::format("elastic: {}; waiting for more, for up to {:.0f} s", replanned.text, options_.nodes_s));
    return reconfiguration_.no_plan(replanned.text, now_s());
  }
  const std::vector<int> givers = givers_beside(*ids);
  reconfiguration_.planned(*ids, givers, plan_s, now_s());
  if (reconfiguration_.state() == Reconfiguration::State::starting)
    send_generation(replanned, *ids, givers, plan_s);
}

// Who has state that the new plan's processes may need, and is none of them: also on a node that goes.
std::vector<int> Generations::givers_beside(const std::vector<int>& ids) const {
  std::vector<int> givers;
  for (const int id : roster_.alive()) {
    if (holders_.contains(id) && std::find(ids.begin(), ids.end(), id) == ids.end()) givers.push_back(id);
  }
  return givers;
}

void Generations::send_generation(const Replanned& made, const std::vector<int>& ids,
                                  const std::vector<int>& givers, double plan_s) {
  const Plan& plan = *made.plan;
  runners_up_ = made.runners_up;
  // When what was lost comes back, it is the best again.
  runners_up_.insert(runners_up_.begin(), std::exchange(plan_, plan));
  second_look_.planned(made.complete);
  record_.begin();
  roster_.assign(ids);
  const int number = reconfiguration_.generation();
  Generation generation{.number = number,
                        .base = reconfiguration_.base(),
                        .plan = plan,
                        .scope = fmt::format("generation-{}", number),
                        .why = fmt::format("{}", fmt::join(reconfiguration_.current().reasons, "; "))};
  std::vector<Hello> hellos;
  for (const int id : ids) {
    const Hello& hello = roster_.at(id).hello;
    hellos.push_back(hello);
    generation.ranks.push_back({hello.node, hello.pid, hello.address, hello.port});
  }
  for (const int id : givers) {
    const Hello& hello = roster_.at(id).hello;
    generation.ranks.push_back({hello.node, hello.pid, hello.address, hello.port});
  }
  holders_.insert(ids.begin(), ids.end());
  for (const int id : roster_.alive()) server_.send(roster_.at(id).peer, generation);
  supervisor_.begin_generation(number, plan, hellos);
  directory_.write_document("plan.json", to_json(plan) + "\n");
  if (!planning_of(directory_.path()).empty())
    directory_.write_document("planning/cluster.yaml", to_yaml(made.nodes));
  events_.write("generation", {{"generation", number},
                               {"why", reconfiguration_.current().reasons},
                               {"how", made.text},
                               {"plan", summary(plan)},
                               {"predicted_iteration_s", promised_s(replanner_, plan)},
                               {"plan_s", rounded_s(plan_s)}});
  say(fmt::format("elastic: generation {}: {} ({})", number, summary(plan), made.text));
  if (!made.table.empty()) say(made.table.substr(0, made.table.find_last_not_of('\n') + 1));
  reconfiguration_.set_idle_limit(std::max(options_.lease_s + 2, 2 * steps_.longest_step_s()));
  steps_.begin_generation(plan.prediction ? plan.prediction->iteration_s : 0);
}

void Generations::now_running(const GenerationChange& change) {
  const int number = reconfiguration_.generation();
  server_.set_generation(number);
  holders_ = reconfiguration_.working();
  const Started first = record_.first();
  const int64_t steps_lost = number == 1 ? 0 : std::max<int64_t>(0, steps_.steps_done() - first.steps_done);
  events_.write("running", record_.running(number, change, roster_, holders_, steps_lost));
  steps_.running(first.steps_done);
  if (number > 1) {
    say(fmt::format("elastic: {} ranks go on after step {} (state from {}), {:.2f} s after the change began",
                    holders_.size(), first.steps_done, first.state_from,
                    change.running_s - change.detected_s));
    if (++in_vain_ > kMostInVain)
      error_ = fmt::format("{} changes in a row and no further step done than {}; the last one: {}", in_vain_,
                           steps_.furthest(), fmt::join(change.reasons, "; "));
    wait_first_step_ = change.detected_s;
    change_s_ = change.running_s - change.idle_s;
  }
  // Those of a node that goes are not needed any more.
  for (const std::string& node : leaving_) {
    for (const int id : roster_.alive_on(node)) server_.send(roster_.at(id).peer, Stop{0, "its node goes"});
    if (const auto agent = roster_.agent_of(node)) server_.send(*agent, Stop{0, "the node goes"});
  }
}

void Generations::log_end(const std::string& status, const std::string& error) {
  Json details = {{"status", status}, {"generation", reconfiguration_.generation()}};
  if (!error.empty()) details["error"] = error;
  events_.write("ended", details);
}

}  // namespace sailor
