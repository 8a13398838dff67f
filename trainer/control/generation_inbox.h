// Passes the controller's messages about generations from the thread of the control channel to the training
// thread of a rank, and can stop the training thread in the middle of a step. Thread-safe.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>

#include "trainer/control/control_message.h"

namespace sailor {

class GenerationInbox {
 public:
  // For the control channel's thread: keeps messages about generations, ignores others.
  void receive(const ControlMessage& message);

  // For the training thread: waits for a generation newer than `number`, and returns the newest one.
  Generation wait_for_newer_than(int number);
  // The training thread enters this generation. `abort` is called once, on any thread, when the generation is
  // interrupted or a newer one arrives; at once if that has already happened.
  void enter(int number, std::function<void()> abort);
  // After this returns, `abort` is not called.
  void leave();
  // The last generation that was entered; 0 = none.
  int entered() const;
  // Whether the last generation that was entered is over.
  bool interrupted() const;
  void wait_until_interrupted();
  // Waits until training runs in that generation or it is over. Returns whether training runs.
  bool wait_until_running(int number);
  // The request to leave the generation in an orderly way, if any.
  std::optional<Interrupt> stop_after_step() const;

 private:
  void abort_if_over(std::unique_lock<std::mutex>& lock);
  bool over() const;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Generation> newest_;
  std::optional<Interrupt> orderly_;
  int interrupted_ = 0;  // the newest interrupted generation
  int entered_ = 0;
  int running_ = 0;  // the newest running generation
  std::function<void()> abort_;
};

}  // namespace sailor
