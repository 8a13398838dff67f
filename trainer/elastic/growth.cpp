#include "trainer/elastic/growth.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>

#include <chrono>
#include <cmath>
#include <ctime>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>

#include "planner/plan/plan_json.h"
#include "planner/process/subprocess.h"
#include "trainer/launch/helper_job.h"
#include "trainer/record/run_directory.h"

namespace sailor {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kArrive_s = 30;  // for a requested node to join; then changes no longer wait for it
constexpr double kRest = 10;      // queries before a refused or released node is requested again

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
      look_(log_) {}

void Growth::tick(const Training& training, const Replanner& replanner, double now_s) {
  if (options_.every_s <= 0) return;
  if (answer_.valid()) {
    if (answer_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return;
    take(answer_.get(), now_s);
  }
  if (seen_) choose(training, replanner, now_s);
  if (next_look_s_ == 0) next_look_s_ = now_s + interval_s();
  if (look_.under_way() || now_s < next_look_s_ || awaits(now_s)) return;
  next_look_s_ = now_s + interval_s();
  try {
    look_.start(options_.look_command());
  } catch (const std::runtime_error& error) {  // the machine has no more processes
    events_.write("look_failed", {{"why", error.what()}});
  }
}

double Growth::interval_s() {
  return options_.every_s * std::uniform_real_distribution(1.0, 1.0 + options_.spread)(random_);
}

// Free nodes that may be requested now. Slurm reports the node of an ended helper job as free with a delay.
std::vector<SnapshotNode> Growth::candidates(double now_s) const {
  std::vector<SnapshotNode> nodes;
  for (const SnapshotNode& node : seen_->nodes) {
    const auto rests = not_before_s_.find(node.name);
    if (rests != not_before_s_.end() && now_s < rests->second) continue;
    const bool has_it = helpers_.contains(node.name) || options_.own_nodes.contains(node.name);
    if (!has_it && !node.free_gpus.empty()) nodes.push_back(node);
  }
  return within_limits(nodes, seen_->limits);
}

void Growth::choose(const Training& training, const Replanner& replanner, double now_s) {
  GrowthQuestion question{.replanner = replanner,
                          .plan = training.plan,
                          .gpus = training.gpus,
                          .free = candidates(now_s),
                          .most_new = {},
                          .iteration_s = training.iteration_s,
                          .steps_left = training.steps_left,
                          .time_left_s = {},
                          .change_s = training.change_s};
  seen_.reset();
  if (options_.most_nodes)
    question.most_new = std::max(0, *options_.most_nodes - static_cast<int>(training.nodes));
  if (options_.end_s) question.time_left_s = *options_.end_s - static_cast<double>(std::time(nullptr));
  if (question.free.empty() || question.most_new == 0) return;
  std::string text = to_json(training.plan);
  for (const SnapshotNode& node : question.free) text += fmt::format(" {}:{}", node.name, node.free_gpus);
  if (std::exchange(answered_, text) == text) return;
  asked_iteration_s_ = training.iteration_s;
  answer_ =
      std::async(std::launch::async, [question = std::move(question)] { return choose_growth(question); });
}

void Growth::take(const GrowthAnswer& answer, double now_s) {
  if (answer.nodes.empty()) {
    if (std::exchange(said_, answer.why) == answer.why) return;
    events_.write("not_worth", {{"why", answer.why}});
    return;
  }
  said_.clear();
  std::vector<std::string> names;
  try {
    for (const SnapshotNode& node : answer.nodes) {
      helpers_[node.name] = {.node = node, .keeper = options_.start_keeper(node), .asked_s = now_s};
      names.push_back(node.name);
    }
  } catch (const std::runtime_error& error) {
    events_.write("grow_refused", {{"node", answer.nodes[names.size()].name}, {"why", error.what()}});
  }
  if (names.empty()) return;
  events_.write("grow_asked", {{"nodes", names},
                               {"iteration_s", rounded(asked_iteration_s_)},
                               {"then_s", rounded(answer.iteration_s)},
                               {"why", answer.why}});
  say_(fmt::format("elastic: requests {} from Slurm: {}", fmt::join(names, ", "), answer.why));
}

std::optional<SnapshotNode> Growth::came(const std::string& node, double now_s) {
  const auto helper = helpers_.find(node);
  if (helper == helpers_.end() || helper->second.released) return std::nullopt;
  helper->second.came_s = now_s;
  events_.write("grew", {{"node", node}, {"gpus", helper->second.node.free_gpus}});
  return helper->second.node;
}

std::optional<std::string> Growth::child_ended(pid_t child, int wait_status, double now_s) {
  if (look_.ended(child, wait_status, seen_)) return std::nullopt;
  for (auto it = helpers_.begin(); it != helpers_.end(); ++it) {
    const auto [node, helper] = *it;
    if (helper.keeper != child) continue;
    helpers_.erase(it);
    not_before_s_[node] = now_s + kRest * options_.every_s;
    answered_.clear();
    if (helper.released) return std::nullopt;
    if (helper.came_s) return node;
    const std::string reason = last_line(log_);
    events_.write("grow_refused", {{"node", node}, {"why", reason}});
    say_(fmt::format("elastic: Slurm did not grant {}: {}", node, reason));
    return std::nullopt;
  }
  return std::nullopt;
}

bool Growth::awaits(double now_s) const {
  for (const auto& [node, helper] : helpers_) {
    if (!helper.came_s && !helper.released && now_s < helper.asked_s + kArrive_s) return true;
  }
  return false;
}

std::vector<std::string> Growth::idle(const std::set<std::string>& used, double for_s, double now_s) const {
  std::vector<std::string> nodes;
  for (const auto& [node, helper] : helpers_) {
    if (helper.came_s && !helper.released && now_s > *helper.came_s + for_s && !used.contains(node))
      nodes.push_back(node);
  }
  return nodes;
}

void Growth::release(const std::string& node, const std::string& why, double now_s) {
  const auto helper = helpers_.find(node);
  if (helper == helpers_.end() || helper->second.released) return;
  helper->second.released = true;
  not_before_s_[node] = now_s + kRest * options_.every_s;
  kill(helper->second.keeper, kEndHelperJob);
  events_.write("released", {{"node", node}, {"why", why}});
  say_(fmt::format("elastic: {} is released: {}", node, why));
}

void Growth::release_all() {
  for (auto& [node, helper] : helpers_) {
    if (!std::exchange(helper.released, true)) kill(helper.keeper, kEndHelperJob);
  }
}

}  // namespace sailor
