#include "trainer/elastic/growth.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <utility>

#include "planner/plan/plan_json.h"
#include "planner/process/subprocess.h"
#include "trainer/record/run_directory.h"

namespace sailor {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kArrive_s = 30;  // for a free node to join; then changes no longer wait for it
constexpr double kRest = 10;      // intervals before a refused or released node is requested again
constexpr double kRequests = 6;   // of sailor-cluster to the scheduler, if what is free has changed
constexpr double kQuietRequests = 1, kYieldingRequests = 2;  // if not; the latter with wanted nodes

Json rounded(double seconds) {
  return std::round(seconds * 1e4) / 1e4;
}

}  // namespace

Growth::Growth(Options options, EventLog& events, std::string log,
               std::function<void(const std::string&)> say)
    : options_(std::move(options)),
      events_(events),
      log_(std::move(log)),
      say_(std::move(say)),
      look_(log_),
      queued_(options_.queued),
      own_(options_.own_nodes) {}

void Growth::tick(const Training& training, const GrowthPlanner& planner, double now_s) {
  if (options_.every_s <= 0) return;
  least_s_ = least_use_s(training.change_s);
  give_up_late_ones(training, now_s);
  if (answer_.valid()) {
    if (answer_.wait_for(std::chrono::seconds(0)) == std::future_status::timeout) return;
    take(answer_.get(), now_s);
  }
  if (seen_) choose(training, planner, now_s);
  const double requests = options_.yields ? kYieldingRequests : kQuietRequests;
  if (next_look_s_ == 0) next_look_s_ = now_s + interval_s(requests);
  if (look_.under_way() || now_s < next_look_s_ || awaits(now_s)) return;
  next_look_s_ = now_s + interval_s(options_.look ? kRequests : requests);
  if (options_.look) {
    seen_ = options_.look();
    return;
  }
  try {
    look_.start(options_.look_command());
  } catch (const std::runtime_error& error) {  // the machine has no more processes
    events_.write("look_failed", {{"why", error.what()}});
  }
}

double Growth::interval_s(double requests) {
  return requests * options_.every_s * std::uniform_real_distribution(1.0, 1.0 + options_.spread)(random_);
}

std::optional<double> Growth::time_left_s() const {
  return options_.end_s ? std::optional<double>(*options_.end_s - options_.clock_s()) : std::nullopt;
}

// The time for which a node could help.
double Growth::window_s(const Training& training) const {
  const double left_s = static_cast<double>(training.steps_left) * training.iteration_s;
  return std::min(left_s, time_left_s().value_or(left_s));
}

// Requests that no longer pay, and all but one of a kind whose free nodes others have taken.
void Growth::give_up_late_ones(const Training& training, double now_s) {
  const bool too_late = window_s(training) < least_s_;
  for (auto& [keeper, helper] : helpers_) {
    if (!helper.waits()) continue;
    if (helper.at_once && now_s < helper.asked_s + kArrive_s) continue;
    if (too_late) {
      withdraw(static_cast<pid_t>(keeper), helper, "too little of the run is left");
      continue;
    }
    if (!std::exchange(helper.at_once, false)) continue;
    int others = 0, alike = 0;
    for (const auto& [id, other] : helpers_) {
      if (id == keeper || !other.waits() || other.at_once || other.in_turn) continue;
      ++others;
      alike += same_kind(other.node, helper.node);
    }
    if (alike > 0 || others >= kMostWaiting)
      withdraw(static_cast<pid_t>(keeper), helper, "others have taken the node");
  }
}

bool Growth::has_or_rests(const SnapshotNode& node, double now_s) const {
  return own_.contains(node.name) || holds(node.name) ||
         std::any_of(rests_.begin(), rests_.end(), [&](const Rest& rest) {
           return now_s < rest.until_s &&
                  (rest.node.name == node.name || (rest.kind && same_kind(rest.node, node)));
         });
}

int Growth::waiting() const {
  return static_cast<int>(
      std::count_if(helpers_.begin(), helpers_.end(), [](const auto& one) { return one.second.waits(); }));
}

int Growth::waiting_longer() const {
  return static_cast<int>(std::count_if(helpers_.begin(), helpers_.end(), [](const auto& one) {
    return one.second.waits() && !one.second.in_turn;
  }));
}

bool Growth::waits_for(const SnapshotNode& kind) const {
  return std::any_of(helpers_.begin(), helpers_.end(),
                     [&](const auto& one) { return one.second.waits() && same_kind(one.second.node, kind); });
}

// Free nodes that may be requested now. Slurm reports the node of an ended helper job as free with a delay.
std::vector<SnapshotNode> Growth::free_ones(double now_s) const {
  std::vector<SnapshotNode> nodes;
  for (const SnapshotNode& node : seen_->nodes) {
    if (!node.free_gpus.empty() && !has_or_rests(node, now_s) && !waits_for(node)) nodes.push_back(node);
  }
  return within_limits(nodes, seen_->limits);
}

// One node of each kind that could be waited for.
std::vector<SnapshotNode> Growth::later_ones(double now_s) const {
  std::vector<SnapshotNode> kinds;
  for (const BusyNode& busy : seen_->busy) {
    const bool known = std::any_of(kinds.begin(), kinds.end(),
                                   [&](const SnapshotNode& kind) { return same_kind(kind, busy.node); });
    if (known || has_or_rests(busy.node, now_s)) continue;
    for (SnapshotNode& node : within_limits({busy.node}, seen_->limits)) kinds.push_back(std::move(node));
  }
  return kinds;
}

void Growth::find_own_nodes() {
  own_ = options_.own_nodes;
  std::set<std::string> free, in_use;
  for (const SnapshotNode& node : seen_->nodes)
    (std::ssize(node.free_gpus) == node.gpus ? free : in_use).insert(node.name);
  std::erase_if(own_, [&](const std::string& name) { return free.contains(name) && !in_use.contains(name); });
}

void Growth::choose(const Training& training, const GrowthPlanner& planner, double now_s) {
  find_own_nodes();
  known_ = seen_->nodes;
  for (const BusyNode& busy : seen_->busy) known_.push_back(busy.node);
  queue_in_turn(training, now_s);
  std::erase_if(rests_, [&](const Rest& rest) { return now_s >= rest.until_s; });
  GrowthQuestion question{
      .planner = planner.copy(),
      .plan = training.plan,
      .gpus = training.gpus,
      .free = free_ones(now_s),
      .later = window_s(training) < least_s_ ? std::vector<SnapshotNode>() : later_ones(now_s),
      .wanted = wanted_now(),
      .most_new = {},
      .iteration_s = training.iteration_s,
      .steps_left = training.steps_left,
      .time_left_s = time_left_s(),
      .change_s = training.change_s};
  seen_.reset();
  if (options_.most_nodes)
    question.most_new = std::max(0, *options_.most_nodes - static_cast<int>(training.nodes) - waiting());
  const bool can_grow = !(question.free.empty() && question.later.empty()) && question.most_new != 0;
  if (!can_grow && question.wanted.empty()) return;
  std::string text = to_json(training.plan);
  for (const SnapshotNode& node : question.free) text += fmt::format(" {}:{}", node.name, node.free_gpus);
  for (const SnapshotNode& node : question.later)
    text += fmt::format(" {}:{}:{}", describe_kind(node), node.zone, node.gpus);
  for (const WantedNode& wanted : question.wanted) text += fmt::format(" {}!{}", wanted.node, wanted.job);
  if (std::exchange(answered_, text) == text) return;
  asked_iteration_s_ = training.iteration_s;
  asked_later_ = question.later;
  answer_ = std::async(options_.in_thread ? std::launch::async : std::launch::deferred,
                       [question = std::move(question)] { return choose_growth(question); });
}

// The nodes for which the job could have waited.
void Growth::queue_in_turn(const Training& training, double now_s) {
  for (QueuedNodes& kind : queued_) {
    const auto like = std::find_if(known_.begin(), known_.end(),
                                   [&](const SnapshotNode& node) { return kind.are_like(node); });
    const int wished = std::exchange(kind.nodes, 0);
    if (like == known_.end() || window_s(training) < least_s_) continue;
    SnapshotNode whole = *like;
    whole.free_gpus.resize(static_cast<size_t>(whole.gpus));
    std::iota(whole.free_gpus.begin(), whole.free_gpus.end(), 0);
    int count = 0;
    for (const SnapshotNode& node :
         within_limits(std::vector(static_cast<size_t>(wished), whole), seen_->limits)) {
      const int nodes = static_cast<int>(training.nodes) + waiting();
      if (options_.most_nodes && nodes >= *options_.most_nodes) break;
      if (waiting() - waiting_longer() >= kMostInTurn) {
        kind.nodes = wished - count;
        break;
      }
      if (!request({.node = node, .at_once = false, .in_turn = true, .asked_s = now_s})) break;
      ++count;
    }
    if (count == 0) continue;
    events_.write("grow_queued", {{"gpu_type", kind.gpu_type},
                                  {"gpus", kind.gpus},
                                  {"partition", kind.partition},
                                  {"count", count},
                                  {"why", "the job could have waited for them"}});
    say_(fmt::format("elastic: waits in the queue for {} with {}",
                     count == 1 ? "a node" : fmt::format("{} nodes", count), describe_kind(whole)));
  }
  std::erase_if(queued_, [](const QueuedNodes& kind) { return kind.nodes == 0; });
}

// Of the nodes that it holds, and did not get in its turn.
std::vector<WantedNode> Growth::wanted_now() const {
  std::vector<WantedNode> wanted;
  if (!options_.yields) return wanted;
  for (const auto& [keeper, helper] : helpers_)
    for (const WantedNode& one : seen_->wanted)
      if (helper.came_s && !helper.in_turn && helper.node.name == one.node) wanted.push_back(one);
  return wanted;
}

void Growth::take(const GrowthAnswer& answer, double now_s) {
  for (const WantedNode& wanted : answer.returns)
    release(wanted.node, fmt::format("job {} waits for it", wanted.job), false, now_s);
  if (!answer.returns.empty()) return;
  if (!answer.nodes.empty()) {
    said_.clear();
    return take_nodes(answer, now_s);
  }
  take_waits(answer, now_s);
  if (!answer.waits.empty() || std::exchange(said_, answer.why) == answer.why) return;
  events_.write("not_worth", {{"why", answer.why}});
}

void Growth::take_nodes(const GrowthAnswer& answer, double now_s) {
  std::vector<std::string> names;
  for (const SnapshotNode& node : answer.nodes) {
    if (!request({.node = node, .at_once = true, .asked_s = now_s})) break;
    names.push_back(node.name);
  }
  if (names.empty()) return;
  events_.write("grow_asked", {{"nodes", names},
                               {"iteration_s", rounded(asked_iteration_s_)},
                               {"then_s", rounded(answer.iteration_s)},
                               {"why", answer.why}});
  say_(fmt::format("elastic: requests {} from Slurm: {}", fmt::join(names, ", "), answer.why));
}

void Growth::take_waits(const GrowthAnswer& answer, double now_s) {
  for (auto& [keeper, helper] : helpers_) {
    if (!helper.waits() || helper.at_once || helper.in_turn) continue;
    const auto alike = [&](const SnapshotNode& node) { return same_kind(node, helper.node); };
    const bool was_asked = std::any_of(asked_later_.begin(), asked_later_.end(), alike);
    const bool pays = std::any_of(answer.waits.begin(), answer.waits.end(),
                                  [&](const GrowthAnswer::Wait& wait) { return alike(wait.node); });
    if (was_asked && !pays)
      withdraw(static_cast<pid_t>(keeper), helper, "the plan would not use it any more");
  }
  for (const GrowthAnswer::Wait& wait : answer.waits) {
    if (waiting_longer() >= kMostWaiting) return;
    if (waits_for(wait.node) || !request({.node = wait.node, .at_once = false, .asked_s = now_s})) continue;
    events_.write("grow_queued", {{"gpu_type", wait.node.gpu_type},
                                  {"gpus", wait.node.free_gpus.size()},
                                  {"partition", wait.node.partition},
                                  {"iteration_s", rounded(asked_iteration_s_)},
                                  {"then_s", rounded(wait.iteration_s)},
                                  {"why", wait.why}});
    say_(fmt::format("elastic: waits in the queue for a node with {}: {}", describe_kind(wait.node),
                     wait.why));
  }
}

bool Growth::request(Helper helper) {
  try {
    const pid_t keeper = options_.start_keeper(wish_for(helper));
    helpers_[keeper] = std::move(helper);
    return true;
  } catch (const std::runtime_error& error) {
    events_.write("grow_refused", {{"node", helper.node.name}, {"why", error.what()}});
    return false;
  }
}

// The scheduler knows partition and GPUs of a node, not its zone or price.
Growth::Wish Growth::wish_for(const Helper& helper) const {
  const SnapshotNode& node = helper.node;
  Wish wish{.node = node, .by_name = node.host.gres.empty(), .least_s = least_s_, .in_turn = helper.in_turn};
  int entries = 0;  // of this node, one for each of its types
  for (const SnapshotNode& other : known_) {
    entries += other.name == node.name;
    if (other.partition == node.partition && other.host.gres == node.host.gres && !same_kind(other, node))
      wish.not_on.push_back(other.name);
  }
  if (entries > 1 && !node.shared) wish.by_name = true;
  if (node.shared) {
    wish.not_on.insert(wish.not_on.end(), own_.begin(), own_.end());
    for (const auto& [keeper, helper] : helpers_)
      if (helper.came_s) wish.not_on.push_back(helper.node.name);
  }
  return wish;
}

void Growth::withdraw(pid_t keeper, Helper& helper, const std::string& why) {
  helper.released = true;
  options_.end_keeper(keeper);
  events_.write("grow_withdrawn", {{"gpu_type", helper.node.gpu_type},
                                   {"gpus", helper.node.free_gpus.size()},
                                   {"partition", helper.node.partition},
                                   {"why", why}});
  say_(fmt::format("elastic: no longer waits for a node with {}: {}", describe_kind(helper.node), why));
}

std::optional<SnapshotNode> Growth::came(const std::string& node, int64_t keeper, double now_s) {
  const auto found = helpers_.find(keeper);
  if (found == helpers_.end() || !found->second.waits()) return std::nullopt;
  Helper& helper = found->second;
  if (own_.contains(node) || holds(node)) {
    withdraw(static_cast<pid_t>(keeper), helper, fmt::format("the job has {} already", node));
    return std::nullopt;
  }
  const auto known = std::find_if(known_.begin(), known_.end(),
                                  [&](const SnapshotNode& other) { return other.name == node; });
  helper.node.name = node;
  helper.node.leaf_switch = known == known_.end() ? "" : known->leaf_switch;
  helper.came_s = now_s;
  events_.write("grew", {{"node", node}, {"gpus", helper.node.free_gpus}});
  return helper.node;
}

bool Growth::gave_up(int64_t keeper) const {
  const auto helper = helpers_.find(keeper);
  return former_.contains(keeper) || (helper != helpers_.end() && helper->second.released);
}

std::optional<std::string> Growth::child_ended(pid_t child, int wait_status, double now_s) {
  if (look_.ended(child, wait_status, seen_)) {
    // What is free has changed: this took several requests.
    if (look_.found_more()) next_look_s_ = now_s + interval_s(kRequests);
    return std::nullopt;
  }
  const auto found = helpers_.find(child);
  if (found == helpers_.end()) return std::nullopt;
  const Helper helper = found->second;
  helpers_.erase(found);
  former_.insert(child);
  answered_.clear();
  if (helper.released) return std::nullopt;
  rests_.push_back({helper.node, !helper.came_s, now_s + kRest * options_.every_s});
  if (helper.came_s) return helper.node.name;
  const std::string reason = last_line(log_);
  events_.write("grow_refused", {{"node", helper.node.name}, {"why", reason}});
  say_(fmt::format("elastic: Slurm does not grant a node with {}: {}", describe_kind(helper.node), reason));
  return std::nullopt;
}

bool Growth::holds(const std::string& node) const {
  return std::any_of(helpers_.begin(), helpers_.end(),
                     [&](const auto& one) { return one.second.came_s && one.second.node.name == node; });
}

bool Growth::awaits(double now_s) const {
  return std::any_of(helpers_.begin(), helpers_.end(), [&](const auto& one) {
    return one.second.waits() && one.second.at_once && now_s < one.second.asked_s + kArrive_s;
  });
}

std::vector<std::string> Growth::idle(const std::set<std::string>& used, double for_s, double now_s) const {
  std::vector<std::string> nodes;
  for (const auto& [keeper, helper] : helpers_) {
    if (helper.came_s && !helper.released && now_s > *helper.came_s + for_s &&
        !used.contains(helper.node.name))
      nodes.push_back(helper.node.name);
  }
  return nodes;
}

void Growth::release(const std::string& node, const std::string& why, bool useless, double now_s) {
  for (auto& [keeper, helper] : helpers_) {
    if (!helper.came_s || helper.released || helper.node.name != node) continue;
    helper.released = true;
    rests_.push_back({helper.node, useless, now_s + kRest * options_.every_s});
    options_.end_keeper(static_cast<pid_t>(keeper));
    events_.write("released", {{"node", node}, {"why", why}});
    say_(fmt::format("elastic: {} is released: {}", node, why));
    return;
  }
}

void Growth::release_all() {
  for (auto& [keeper, helper] : helpers_) {
    if (!std::exchange(helper.released, true)) options_.end_keeper(static_cast<pid_t>(keeper));
  }
}

}  // namespace sailor
