// The faults of the fake libraries. Every call asks the script before it does anything. Ranks are identified
// by the current device of the calling thread, so that a thread of the plane that did not set it belongs to
// no rank, and is detected. Thread-safe.
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
    hang,   // it does not return until the communicator, if it has one, is aborted, or until let_go()
    late    // for asynchronous_error: reported by ncclCommGetAsyncError from `delay` after the creation
  };
  std::string call;  // "ncclAllReduce"
  Kind kind = Kind::error;
  int code = 1;
  int device = -1;  // -1 = any
  int after = 0;    // number of calls before
  std::chrono::milliseconds delay{};
};

class FaultScript {
 public:
  void set(std::vector<Fault> faults);
  // Removes all faults, and lets hanging calls continue.
  void let_go();

  // The fault for `call`; nullopt: none. Counts the calls.
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

// Misuse of the libraries, as detected by the fakes: a communicator used after its end, while a call is in
// progress on it, or from a thread without its device. In order; empties the list.
std::vector<std::string> take_violations();
void report_violation(const std::string& text);

}  // namespace sailor::fake
