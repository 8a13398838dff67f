// Progress of a long operation on stderr. On a terminal: one line that is updated, from one second on, with
// rate and remaining time, and removed at the end. Otherwise: a plain line for every tenth, from five seconds
// on, so that logs stay short. Prints nothing if quiet.
//
//     ProgressLine line("tokenize", quiet);
//     line.at(done_bytes, total_bytes);
//
// ProgressLine belongs to one thread. WaitingLine has its own thread, for work that does not report progress.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <iostream>
#include <mutex>
#include <string>
#include <thread>

namespace sailor::cli {

// Output and clock; tests replace them.
struct ProgressOutput {
  std::ostream* out = &std::cerr;
  bool terminal = isatty(STDERR_FILENO) == 1;
  std::function<double()> now_s = [] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  };
};

// "45 s", "3 min", "2.5 h": with the precision of an estimate.
inline std::string rough_duration(double seconds) {
  if (seconds < 100) return fmt::format("{:.0f} s", seconds);
  if (seconds < 6000) return fmt::format("{:.0f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

class ProgressLine {
 public:
  // Amounts are in `unit`, each `unit_size` of the counts of at(): {"MB", 1e6} for bytes.
  struct Unit {
    std::string name = "MB";
    double size = 1e6;
  };

  ProgressLine(std::string what, bool quiet, Unit unit, ProgressOutput output = {})
      : what_(std::move(what)), unit_(std::move(unit)), quiet_(quiet), output_(std::move(output)) {}
  ProgressLine(std::string what, bool quiet) : ProgressLine(std::move(what), quiet, Unit{}) {}
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // `done` of `total` are done, both in counts.
  void at(double done, double total) {
    const double now_s = output_.now_s();
    const double elapsed_s = now_s - began_s_;
    const double part = total > 0 ? done / total : 1;
    if (quiet_ || elapsed_s < (output_.terminal ? kTerminalFrom_s : kLinesFrom_s)) return;
    if (output_.terminal ? now_s - shown_s_ < kTerminalEvery_s : part < next_part_) return;
    shown_s_ = now_s;
    next_part_ = part + kLinesEvery;
    on_screen_ = output_.terminal;
    const double rate = done / elapsed_s;
    const std::string left = rate > 0 ? ", " + rough_duration((total - done) / rate) + " left" : "";
    *output_.out << (output_.terminal ? "\r\033[K" : "")
                 << fmt::format("{}: {:.0f} % of {:.5g} {}, {:.3g} {}/s{}", what_, 100 * part,
                                total / unit_.size, unit_.name, rate / unit_.size, unit_.name, left)
                 << (output_.terminal ? "" : "\n") << std::flush;
  }

  // Removes the progress from the terminal, for a line that stays.
  void clear() {
    if (on_screen_) *output_.out << "\r\033[K" << std::flush;
    on_screen_ = false;
  }

 private:
  static constexpr double kTerminalFrom_s = 1, kTerminalEvery_s = 0.2, kLinesFrom_s = 5, kLinesEvery = 0.1;

  std::string what_;
  Unit unit_;
  bool quiet_, on_screen_ = false;
  ProgressOutput output_;
  double began_s_ = output_.now_s(), shown_s_ = -1e9, next_part_ = 0;
};

// "plan: searching, 3 s of at most 60 s" on a terminal, during its lifetime, from one second on.
class WaitingLine {
 public:
  WaitingLine(std::string what, double limit_s, bool quiet) {
    if (quiet || isatty(STDERR_FILENO) != 1) return;
    thread_ = std::jthread([this, what = std::move(what), limit_s](const std::stop_token& stop) {
      const auto began = std::chrono::steady_clock::now();
      std::unique_lock lock(mutex_);
      bool on_screen = false;
      while (!wake_.wait_for(lock, stop, std::chrono::seconds(1), [] { return false; }) &&
             !stop.stop_requested()) {
        const double elapsed_s =
            std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
        std::cerr << fmt::format("\r\033[K{}, {} of at most {}", what, rough_duration(elapsed_s),
                                 rough_duration(limit_s))
                  << std::flush;
        on_screen = true;
      }
      if (on_screen) std::cerr << "\r\033[K" << std::flush;
    });
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread thread_;  // last member: it ends before the others are destroyed
};

}  // namespace sailor::cli
