#include "trainer/comm/nccl/call_with_limit.h"

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

namespace sailor {

bool call_with_limit(std::function<void()> call, std::chrono::steady_clock::time_point until,
                     const std::function<bool()>& given_up) {
  struct Call {
    std::mutex mutex;
    std::condition_variable returned;
    bool over = false;
  };
  const auto state = std::make_shared<Call>();
  std::thread([state, call = std::move(call)]() mutable {
    try {
      call();
    } catch (...) {  // a call that has something to say keeps it
    }
    call = nullptr;  // what it owns goes before anybody is told
    const std::lock_guard lock(state->mutex);
    state->over = true;
    state->returned.notify_all();
  }).detach();
  std::unique_lock lock(state->mutex);
  while (!state->over) {
    const auto now = std::chrono::steady_clock::now();
    if (now >= until || (given_up && given_up())) return false;
    // Polls only if the caller may give up earlier.
    state->returned.wait_until(lock, given_up ? std::min(until, now + std::chrono::milliseconds(10)) : until);
  }
  return true;
}

}  // namespace sailor
