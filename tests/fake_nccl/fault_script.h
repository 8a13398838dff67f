// What goes wrong in the fake libraries, and when. A call asks the script before it does anything. Ranks are
// told apart by the device that is current on the calling thread, so that a thread of the plane which has
// forgotten to set it is none of any rank's, and is found out. Thread-safe.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace sailor::fake {

struct Fault {
  enum class Kind {
    error,  // the call does nothing and returns `code`
    hang,   // it does not return before the communicator is aborted, where it has one, or let_go()
    late    // for asynchronous_error: reported by ncclCommGetAsyncError from `delay` after the creation
  };
  std::string call;  // "ncclAllReduce"
  Kind kind = Kind::error;
  int code = 1;
  int device = -1;  // -1 = any
  int after = 0;    // so many calls pass first
  std::chrono::milliseconds delay{};
};

class FaultScript {
 public:
  void set(std::vector<Fault> faults);
  // No faults any more, and calls that hang go on.
  void let_go();

  // What `call` is to do; nullopt: its work. Counts the calls.
  std::optional<Fault> next(const std::string& call, int device);
  // Returns after let_go(), or when `over()`.
  void hang(const std::function<bool()>& over);

 private:
  struct Armed {
    Fault fault;
    int seen = 0;
  };
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Armed> faults_;
  int released_ = 0;
};

FaultScript& script();

// What a user of the libraries must not do, as the fake saw it: a communicator used after its end, while a
// call is in progress on it, or from a thread without its device. In order; empties the list.
std::vector<std::string> take_violations();
void report_violation(const std::string& text);

}  // namespace sailor::fake
