// What the controller has told a rank about generations, handed from the thread of the control channel to the
// thread that trains, and the way to stop the latter in the middle of a step. Thread-safe.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>

#include "trainer/control/control_message.h"

namespace sailor {

class GenerationInbox {
 public:
  // Of the control channel's thread: keeps what concerns generations, ignores the rest.
  void receive(const ControlMessage& message);

  // Of the training thread. Waits for a generation newer than `number`, and returns the newest one.
  Generation wait_for_newer_than(int number);
  // The thread works in this generation from now on: `abort` is called once, on whichever thread, as soon as
  // the generation is interrupted or a newer one is there; at once when that is so already.
  void enter(int number, std::function<void()> abort);
  // `abort` is not called any more when this has returned.
  void leave();
  // The generation that was entered last; 0 = none.
  int entered() const;
  // Whether the generation that was entered last is over, step or no step.
  bool interrupted() const;
  void wait_until_interrupted();
  // Waits until training runs in that generation, or it is over. Returns whether it runs.
  bool wait_until_running(int number);
  // When it is to be left in an orderly way.
  std::optional<Interrupt> stop_after_step() const;

 private:
  void abort_if_over(std::unique_lock<std::mutex>& lock);
  bool over() const;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Generation> newest_;
  std::optional<Interrupt> orderly_;
  int interrupted_ = 0;  // the newest generation that was
  int entered_ = 0;
  int running_ = 0;  // the newest generation that does
  std::function<void()> abort_;
};

}  // namespace sailor
