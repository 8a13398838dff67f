// The client end of the control channel, in a rank or an agent. One background thread owns the socket: it
// sends queued messages and checks the lease. When the lease expires (the controller is gone or unreachable)
// or a stop arrives, it makes one callback on that thread; the owner then ends its process. The first lease
// begins with the construction. Other messages of the controller are passed on in that thread too.
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
    // All other messages of the controller, and leases.
    std::function<void(const ControlMessage&)> message{};
    // Value for Alive::in_step_s; absent = 0.
    std::function<double()> in_step_s{};
  };

  // Connects to `address`, one of endpoint.addresses. Throws std::runtime_error.
  ControlClient(const ControlEndpoint& endpoint, const std::string& address, Callbacks callbacks);
  // Sends queued messages, for up to two seconds.
  ~ControlClient();
  ControlClient(const ControlClient&) = delete;
  ControlClient& operator=(const ControlClient&) = delete;

  void send(const ControlMessage& message);
  // Waits until all previous messages have been handed to the network, at most `timeout_s`. Returns whether
  // they have.
  bool flush(double timeout_s);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sailor
