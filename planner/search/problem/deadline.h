// The time limit of a search, and the fraction of it that may have passed by now. Records whether either was
// reached. Not thread-safe, except for the stop flag.
#pragma once

#include <atomic>
#include <chrono>

namespace sailor {

class Deadline {
 public:
  // `stop`, if given: once true, the limit has passed.
  explicit Deadline(double limit_s, const std::atomic<bool>* stop = nullptr)
      : limit_s_(limit_s), stop_(stop), started_(std::chrono::steady_clock::now()) {}

  double elapsed_s() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
  }
  // From now on only this fraction of the limit may have passed.
  void allow(double share) { share_ = share; }
  // Has the whole limit passed? Not recorded.
  bool passed() const { return passed(elapsed_s()); }
  bool expired() {
    const double now_s = elapsed_s();
    timed_out_ = timed_out_ || passed(now_s);
    const bool spent = now_s > share_ * limit_s_;
    cut_short_ = cut_short_ || spent;
    return timed_out_ || spent;
  }
  bool timed_out() const { return timed_out_; }  // expired() saw the whole limit pass
  bool cut_short() const { return cut_short_; }  // or a fraction of it

 private:
  bool passed(double now_s) const { return now_s > limit_s_ || (stop_ != nullptr && *stop_); }

  const double limit_s_;
  const std::atomic<bool>* const stop_;
  const std::chrono::steady_clock::time_point started_;
  double share_ = 1;
  bool timed_out_ = false;
  bool cut_short_ = false;
};

}  // namespace sailor
