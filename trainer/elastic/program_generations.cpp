#include "trainer/elastic/program_generations.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "planner/spec/error.h"

namespace sailor {

const char* to_string(ProgramGenerations::State state) {
  constexpr const char* kNames[] = {"running",  "ending",  "settling", "pausing",
                                    "planning", "waiting", "ended"};
  return kNames[static_cast<int>(state)];
}

void ProgramGenerations::begin(std::set<std::string> nodes, double now_s) {
  change_ = {};
  change_.detected_s = change_.ended_s = now_s;
  planned(std::move(nodes), 0, now_s);
}

void ProgramGenerations::begin_without(const std::string& why, double now_s) {
  change_ = {};
  change_.reasons = {why};
  change_.detected_s = change_.ended_s = now_s;
  plan(now_s);
}

void ProgramGenerations::planned(std::set<std::string> nodes, double plan_s, double now_s) {
  if (state_ != State::planning) return;
  waiting_since_s_.reset();
  ++generation_;
  nodes_ = running_ = starting_ = std::move(nodes);
  change_.plan_s = plan_s;
  somebody_done_ = explained_ = false;
  exit_code_.reset();
  failure_.clear();
  running_since_s_ = now_s;
  enter(State::running, now_s);
}

void ProgramGenerations::started(const std::string& node, int generation, double now_s) {
  if (generation != generation_ || starting_.erase(node) == 0 || !starting_.empty()) return;
  if (state_ != State::running) return;
  change_.running_s = now_s;
  actions_.emplace_back(RanksRun{change_});
}

void ProgramGenerations::ended(const std::string& node, int generation, int exit_code, double now_s) {
  if (generation != generation_ || !running_.contains(node)) return;
  if (state_ == State::running && exit_code == 0) {
    somebody_done_ = true;
  } else if (state_ == State::running) {
    exit_code_ = exit_code;
    fail(fmt::format("a rank on {} failed with exit code {}", node, exit_code), now_s, now_s);
  }
  node_done(node, now_s);
}

void ProgramGenerations::hangs(const std::string& why, double progress_s, double now_s) {
  if (state_ == State::running) fail(why, progress_s, now_s);
}

void ProgramGenerations::lost(const std::string& node, const std::string& why, double now_s) {
  if (!nodes_.contains(node) || state_ == State::ended) return;
  explained_ = true;
  const std::string reason = fmt::format("{} is lost: {}", node, why);
  if (state_ == State::running && running_.contains(node)) {
    end_ranks(reason, now_s);
  } else if (state_ == State::ending || state_ == State::settling || state_ == State::pausing) {
    change_.reasons.push_back(reason);
  }
  node_done(node, now_s);
  if (state_ == State::settling || state_ == State::pausing) plan(now_s);
}

void ProgramGenerations::change(const std::string& why, double now_s) {
  if (state_ == State::ended || state_ == State::planning) return;
  explained_ = true;
  if (state_ == State::running) {
    end_ranks(why, now_s);
  } else {
    change_.reasons.push_back(why);
  }
  if (state_ == State::settling || state_ == State::pausing) plan(now_s);
}

void ProgramGenerations::more_nodes(double now_s) {
  if (state_ == State::waiting) plan(now_s);
}

void ProgramGenerations::no_plan(const std::string& why, double now_s) {
  if (state_ != State::planning) return;
  last_no_plan_ = why;
  if (!waiting_since_s_) waiting_since_s_ = now_s;
  enter(State::waiting, now_s);
}

void ProgramGenerations::stop(const std::string& why, double now_s) {
  if (state_ == State::ended || !stop_.empty()) return;
  stop_ = why;
  if (state_ == State::running) end_ranks(why, now_s);
  look_whether_all_ended(now_s);
}

void ProgramGenerations::tick(double now_s) {
  const auto in_state_s = [&] { return now_s - since_s_; };
  if (state_ == State::ending && in_state_s() > limits_.end_s) {
    for (const std::string& node : std::set<std::string>(running_)) actions_.emplace_back(DropNode{node});
    enter(State::ending, now_s);
  }
  if (state_ == State::settling && in_state_s() > limits_.loss_s) fail_or_pause(now_s);
  if (state_ == State::pausing && in_state_s() >= pause_s_) plan(now_s);
  if (state_ == State::waiting && now_s - *waiting_since_s_ > limits_.nodes_s)
    finish(kFailed, fmt::format("{} (waited {:.0f} s for nodes)", last_no_plan_, now_s - *waiting_since_s_));
}

std::vector<ProgramAction> ProgramGenerations::take_actions() {
  return std::exchange(actions_, {});
}

void ProgramGenerations::fail(const std::string& why, double well_until_s, double now_s) {
  failure_ = why;
  failed_s_ = well_until_s;
  end_ranks(why, now_s);
}

void ProgramGenerations::end_ranks(const std::string& why, double now_s) {
  change_ = {};
  change_.reasons = {why};
  change_.detected_s = now_s;
  actions_.emplace_back(EndRanks{});
  enter(State::ending, now_s);
}

void ProgramGenerations::node_done(const std::string& node, double now_s) {
  running_.erase(node);
  starting_.erase(node);
  look_whether_all_ended(now_s);
}

void ProgramGenerations::look_whether_all_ended(double now_s) {
  if (!running_.empty()) return;
  if (state_ == State::running) return finish(kDone, "");
  if (!stop_.empty() && state_ != State::ended) return finish(exit_code_.value_or(kFailed), stop_);
  if (state_ != State::ending) return;
  change_.ended_s = now_s;
  if (explained_) return plan(now_s);
  enter(State::settling, now_s);
}

// No loss explains the failure.
void ProgramGenerations::fail_or_pause(double now_s) {
  if (failed_s_ - running_since_s_ >= limits_.lasting_s) in_a_row_ = 0;
  if (++in_a_row_ > limits_.restarts)
    return finish(
        exit_code_.value_or(kFailed),
        limits_.restarts == 0 ? failure_ : fmt::format("{}, {} times in a row", failure_, in_a_row_));
  ++restarts_;
  change_.failed = true;
  pause_s_ = in_a_row_ == 1 ? 0
                            : std::min(limits_.longest_pause_s,
                                       limits_.pause_s * static_cast<double>(1 << (in_a_row_ - 2)));
  enter(State::pausing, now_s);
}

void ProgramGenerations::plan(double now_s) {
  enter(State::planning, now_s);
  actions_.emplace_back(PlanRanks{});
}

void ProgramGenerations::enter(State state, double now_s) {
  state_ = state;
  since_s_ = now_s;
}

void ProgramGenerations::finish(int exit_code, const std::string& error) {
  state_ = State::ended;
  actions_.emplace_back(EndPrograms{exit_code, error});
}

}  // namespace sailor
