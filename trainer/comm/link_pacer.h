// A hook by which an emulated network makes messages between ranks take the time that another link would
// need. Planes of real devices have none.
#pragma once

#include <chrono>
#include <cstddef>

namespace sailor {

class LinkPacer {
 public:
  using Clock = std::chrono::steady_clock;
  virtual ~LinkPacer() = default;

  // Called when a message of `bytes` is posted by rank `from` of the job to rank `to`. The message leaves at
  // the time that is returned, not before; times in the past do not delay it. Messages of one pair must get
  // ascending times. Called by one thread at a time.
  virtual Clock::time_point departure(int from, int to, std::size_t bytes) = 0;
};

}  // namespace sailor
