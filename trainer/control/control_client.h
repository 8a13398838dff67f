// A rank's or agent's end of the control channel. One background thread owns the socket: it sends what is
// queued, and watches the lease. When the lease runs out (the controller is gone or cannot be reached) or a
// stop arrives, it calls back, once, on that thread; the owner then ends its process. The lease first runs
// from the construction. Other messages of the controller are handed over on that thread too.
//
// send() is thread-safe and never blocks on the network.
#pragma once

#include <functional>
#include <memory>

#include "trainer/control/control_endpoint.h"
#include "trainer/control/control_message.h"

namespace sailor {

class ControlClient {
 public:
  struct Callbacks {
    std::function<void()> lease_expired;
    std::function<void(const Stop&)> stop;
    // Whatever else the controller says, leases included.
    std::function<void(const ControlMessage&)> message{};
    // What Alive::in_step_s is to say; absent = 0.
    std::function<double()> in_step_s{};
  };

  // Connects to `address`, one of endpoint.addresses. Throws std::runtime_error.
  ControlClient(const ControlEndpoint& endpoint, const std::string& address, Callbacks callbacks);
  // Sends what is still queued, for up to two seconds.
  ~ControlClient();
  ControlClient(const ControlClient&) = delete;
  ControlClient& operator=(const ControlClient&) = delete;

  void send(const ControlMessage& message);
  // Waits until everything sent so far has been handed to the network, or `timeout_s` has passed. Returns
  // whether it was.
  bool flush(double timeout_s);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sailor
