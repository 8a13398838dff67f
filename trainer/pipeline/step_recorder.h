// Records the time of a rank's iteration: seconds by kind of task, and on request every single task. On an
// asynchronous device it is the device's time. One thread per object.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "trainer/comm/device.h"
#include "trainer/control/step_trace.h"

namespace sailor {

class StepRecorder {
 public:
  using Clock = std::chrono::steady_clock;

  // `device` outlives the object.
  explicit StepRecorder(Device& device = host_device()) : device_(device) {}

  // Begins a new iteration.
  void begin(bool keep_tasks) {
    seconds_ = {};
    tasks_.clear();
    keep_tasks_ = keep_tasks;
    epoch_at_zero_s_ = seconds(std::chrono::system_clock::now()) - seconds(Clock::now());
    spans_.clear();
    if (!device_.asynchronous()) return;
    began_ = Clock::now();
    began_mark_ = device_.mark();
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
    if (device_.asynchronous()) {
      std::shared_ptr<TimeMark> from = device_.mark();
      std::forward<Function>(function)();
      spans_.push_back({kind, microbatch, std::move(from), device_.mark()});
      return;
    }
    const auto start = Clock::now();
    std::forward<Function>(function)();
    add(kind, microbatch, start, Clock::now());
  }
  // Waits until a device has finished the tasks. Call it before reading their times.
  void finish() {
    for (const Span& span : std::exchange(spans_, {})) {
      const auto after = [&](const TimeMark& mark) {
        return began_ + std::chrono::duration_cast<Clock::duration>(
                            std::chrono::duration<double>(device_.seconds_between(*began_mark_, mark)));
      };
      add(span.kind, span.microbatch, after(*span.from), after(*span.to));
    }
  }

  double total_s(TaskKind kind) const { return seconds_[static_cast<std::size_t>(kind)]; }
  // In the order in which they ended; empty unless requested.
  std::vector<TracedTask> take_tasks() { return std::exchange(tasks_, {}); }

 private:
  struct Span {
    TaskKind kind;
    int microbatch;
    std::shared_ptr<TimeMark> from, to;
  };

  template <class TimePoint>
  static double seconds(TimePoint at) {
    return std::chrono::duration<double>(at.time_since_epoch()).count();
  }

  Device& device_;
  Clock::time_point began_;  // of the iteration
  std::shared_ptr<TimeMark> began_mark_;
  std::vector<Span> spans_;
  std::array<double, kTaskKinds> seconds_{};
  std::vector<TracedTask> tasks_;
  bool keep_tasks_ = false;
  double epoch_at_zero_s_ = 0;  // the system clock at zero of the steady clock
};

}  // namespace sailor
