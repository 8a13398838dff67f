// Data plane `thread`: ranks are threads of one process. For tests, and for measuring a layer with several TP
// ranks.
//
//     ThreadHub hub(4, options);
//     threads.emplace_back([&] { auto factory = hub.factory(rank); ... });
//
// Sends complete when the receiver has taken the message, as they may on any plane, so a schedule that would
// deadlock on a real network also deadlocks here. The hub is thread-safe and must outlive its factories.
#pragma once

#include <memory>

#include "trainer/comm/communicator.h"

namespace sailor {

class ThreadHub {
 public:
  explicit ThreadHub(int size, CommOptions options = {});
  ~ThreadHub();

  std::unique_ptr<CommFactory> factory(int rank);

  struct State;  // the mailboxes; private to the plane

 private:
  std::shared_ptr<State> state_;
};

}  // namespace sailor
