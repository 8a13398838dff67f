// Where the time of a rank's iteration goes: seconds by kind of task, and on request every task by itself.
// One thread per object.
#pragma once

#include <array>
#include <chrono>
#include <utility>
#include <vector>

#include "trainer/elastic/step_trace.h"

namespace sailor {

class StepRecorder {
 public:
  using Clock = std::chrono::steady_clock;

  // A new iteration begins.
  void begin(bool keep_tasks) {
    seconds_ = {};
    tasks_.clear();
    keep_tasks_ = keep_tasks;
    epoch_at_zero_s_ = seconds(std::chrono::system_clock::now()) - seconds(Clock::now());
  }

  void add(TaskKind kind, int microbatch, Clock::time_point start, Clock::time_point end) {
    seconds_[static_cast<std::size_t>(kind)] += std::chrono::duration<double>(end - start).count();
    if (keep_tasks_)
      tasks_.push_back(
          {kind, microbatch, epoch_at_zero_s_ + seconds(start), epoch_at_zero_s_ + seconds(end)});
  }
  // Runs `function` as a task.
  template <class Function>
  void timed(TaskKind kind, int microbatch, Function&& function) {
    const auto start = Clock::now();
    std::forward<Function>(function)();
    add(kind, microbatch, start, Clock::now());
  }

  double total_s(TaskKind kind) const { return seconds_[static_cast<std::size_t>(kind)]; }
  // In the order in which they ended; empty unless asked for.
  std::vector<TracedTask> take_tasks() { return std::exchange(tasks_, {}); }

 private:
  template <class TimePoint>
  static double seconds(TimePoint at) {
    return std::chrono::duration<double>(at.time_since_epoch()).count();
  }

  std::array<double, kTaskKinds> seconds_{};
  std::vector<TracedTask> tasks_;
  bool keep_tasks_ = false;
  double epoch_at_zero_s_ = 0;  // the system clock's time at zero of the steady one
};

}  // namespace sailor
