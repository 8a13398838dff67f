#include "trainer/elastic/reconfiguration.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace sailor {

const char* to_string(Reconfiguration::State state) {
  switch (state) {
    case Reconfiguration::State::joining:
      return "joining";
    case Reconfiguration::State::running:
      return "running";
    case Reconfiguration::State::interrupting:
      return "interrupting";
    case Reconfiguration::State::planning:
      return "planning";
    case Reconfiguration::State::starting:
      return "starting";
    case Reconfiguration::State::waiting:
      return "waiting";
    case Reconfiguration::State::ended:
      return "ended";
  }
  return "?";
}

Reconfiguration::Reconfiguration(Limits limits) : limits_(limits) {}

void Reconfiguration::begin(const std::vector<int>& processes, double now_s) {
  alive_.insert(processes.begin(), processes.end());
  working_ = {processes.begin(), processes.end()};
  generation_ = base_ = 1;
  change_ = {};
  change_.detected_s = change_.sent_s = now_s;
  change_.attempts = 1;
  state_ = State::starting;
  since_s_ = now_s;
  look_whether_all_started(now_s);
}

void Reconfiguration::begin_change(const std::string& why, double now_s) {
  // A change in progress collects reasons; after a completed change, the list starts over.
  if (state_ == State::running) {
    change_ = {};
    change_.detected_s = now_s;
  }
  if (std::find(change_.reasons.begin(), change_.reasons.end(), why) == change_.reasons.end())
    change_.reasons.push_back(why);
}

void Reconfiguration::interrupt(const std::string& why, int64_t after_step, bool save, double within_s,
                                double now_s) {
  begin_change(why, now_s);
  if (state_ != State::interrupting) {
    idle_.clear();
    suspects_.clear();
    somebody_lost_ = false;
    since_s_ = now_s;
  }
  state_ = State::interrupting;
  orderly_ = after_step > 0;
  deadline_s_ = now_s + within_s;
  actions_.emplace_back(SendInterrupt{generation_, after_step, save});
}

void Reconfiguration::joined(int process, double now_s) {
  alive_.insert(process);
  if (state_ == State::waiting) make_plan(now_s);
}

void Reconfiguration::lost(int process, const std::string& why, double now_s) {
  if (state_ == State::ended || !alive_.erase(process)) return;
  const bool worked = working_.erase(process) > 0;
  const bool in_force = state_ == State::running || state_ == State::starting;
  if (in_force && !worked) return;  // a spare
  // Ranks that wait for the lost one cannot finish the step either.
  if (in_force || (state_ == State::interrupting && orderly_ && worked)) {
    interrupt(why, 0, false, limits_.idle_s, now_s);
  } else {
    begin_change(why, now_s);
  }
  change_.lost.insert(process);
  somebody_lost_ = true;
  look_whether_all_idle(now_s);
}

void Reconfiguration::broken(int process, int generation, const std::string& text, int suspect,
                             double now_s) {
  if (generation != generation_ || !working_.contains(process)) return;
  last_trouble_ = text;
  const bool in_force = state_ == State::running || state_ == State::starting;
  if (in_force || (state_ == State::interrupting && orderly_))
    interrupt(text, 0, false, limits_.idle_s, now_s);
  if (state_ == State::interrupting && suspect >= 0) suspects_.insert(suspect);
}

void Reconfiguration::idle(int process, int generation, double now_s) {
  if (generation != generation_ || !working_.contains(process)) return;
  if (state_ == State::running || state_ == State::starting)
    interrupt("a rank stopped", 0, false, limits_.idle_s, now_s);
  if (state_ != State::interrupting) return;
  idle_.insert(process);
  look_whether_all_idle(now_s);
}

void Reconfiguration::started(int process, int generation, double now_s) {
  if (state_ == State::joining && generation == 1) started_.insert(process);
  if (generation != generation_ || state_ != State::starting || !working_.contains(process)) return;
  started_.insert(process);
  look_whether_all_started(now_s);
}

void Reconfiguration::change(const std::string& why, int64_t after_step, bool save, double within_s,
                             double now_s) {
  if (state_ == State::running)
    interrupt(why, after_step, save, after_step > 0 ? within_s : limits_.idle_s, now_s);
}

void Reconfiguration::planned(const std::vector<int>& processes, const std::vector<int>& givers,
                              double plan_s, double now_s) {
  if (state_ != State::planning) return;
  change_.plan_s += plan_s;
  std::set<int> members(processes.begin(), processes.end());
  members.insert(givers.begin(), givers.end());
  if (!std::includes(alive_.begin(), alive_.end(), members.begin(), members.end())) return make_plan(now_s);
  ++generation_;
  ++change_.attempts;
  working_ = std::move(members);
  givers_ = {givers.begin(), givers.end()};
  started_.clear();
  state_ = State::starting;
  since_s_ = now_s;
  change_.sent_s = now_s;
}

void Reconfiguration::no_plan(const std::string& why, double now_s) {
  if (state_ != State::planning) return;
  working_.clear();
  last_trouble_ = why;
  state_ = State::waiting;
  since_s_ = now_s;
}

void Reconfiguration::tick(double now_s) {
  if (state_ == State::interrupting && now_s > deadline_s_) {
    if (orderly_) return interrupt(change_.reasons.back(), 0, false, limits_.idle_s, now_s);
    drop_who_is_not_idle(false, now_s);
  } else if (state_ == State::interrupting && !orderly_ && now_s > since_s_ + limits_.suspect_s) {
    drop_who_is_not_idle(true, now_s);
  } else if (state_ == State::starting && generation_ > 1 && now_s > since_s_ + limits_.start_s) {
    interrupt(fmt::format("generation {} did not start within {:.0f} s", generation_, limits_.start_s), 0,
              false, limits_.idle_s, now_s);
  } else if (state_ == State::waiting && now_s > since_s_ + limits_.nodes_s) {
    end(fmt::format("{}, and no more nodes joined within {:.0f} s", last_trouble_, limits_.nodes_s));
  }
}

// Only the suspects, if no other process is missing.
void Reconfiguration::drop_who_is_not_idle(bool suspects_only, double now_s) {
  std::vector<int> late;
  for (const int process : working_) {
    if (idle_.contains(process)) continue;
    if (suspects_only && !suspects_.contains(process)) return;
    late.push_back(process);
  }
  for (const int process : late) {
    const std::string why = suspects_only ? "others lost the connection to it, and it does not answer"
                                          : "did not stop on request: it hangs";
    actions_.emplace_back(DropProcess{process, why});
    lost(process, why, now_s);
  }
}

void Reconfiguration::look_whether_all_idle(double now_s) {
  if (state_ != State::interrupting) return;
  for (const int process : working_) {
    if (!idle_.contains(process)) return;
  }
  // No process is missing, yet they could not reach each other: a single time may be a transient network
  // fault.
  if (!somebody_lost_ && !orderly_ && ++fruitless_ >= limits_.fruitless)
    return end(fmt::format("{} consecutive generations failed without a lost process: {}", fruitless_,
                           last_trouble_.empty() ? change_.reasons.back() : last_trouble_));
  change_.idle_s = now_s;
  make_plan(now_s);
}

void Reconfiguration::look_whether_all_started(double now_s) {
  for (const int process : working_) {
    if (!started_.contains(process)) return;
  }
  for (const int giver : givers_) working_.erase(giver);
  givers_.clear();
  state_ = State::running;
  since_s_ = now_s;
  base_ = generation_;
  change_.running_s = now_s;
  actions_.emplace_back(NowRunning{change_});
}

void Reconfiguration::make_plan(double now_s) {
  state_ = State::planning;
  since_s_ = now_s;
  actions_.emplace_back(MakePlan{});
}

void Reconfiguration::end(const std::string& error) {
  state_ = State::ended;
  actions_.emplace_back(EndJob{error});
}

std::vector<ReconfigurationAction> Reconfiguration::take_actions() {
  return std::exchange(actions_, {});
}

}  // namespace sailor
