// The controller's end of the control channel: a ZeroMQ ROUTER with CURVE encryption. Only peers with the
// controller's public key and the job's client key can connect; the handshake rejects others. A connected
// peer that sends an invalid message, more than 16 MiB at once, or the same message twice is dropped: its
// messages are ignored, and its lease expires.
//
// A peer is silent when it does not answer leases: for a shorter time if its connection has ended, because
// its process did or because its machine does not even acknowledge what it is sent. Machines acknowledge
// however busy their processes are.
//
// Deliberately single-threaded: leases are renewed only while the owner calls poll(), so that a controller
// that hangs loses its ranks, like one that died. Not thread-safe.
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trainer/control/control_endpoint.h"
#include "trainer/control/control_message.h"

namespace sailor {

class ControlServer {
 public:
  struct Options {
    std::string bind_address = "*";  // "127.0.0.1": this machine only
    double lease_s = 15;
    double lease_period_s = 0.5;  // time between renewals
  };

  // Binds to a free port and generates the keys of the job. Throws std::runtime_error.
  ControlServer();
  explicit ControlServer(Options options);
  ~ControlServer();
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

  // What peers need to connect, with the addresses of this machine.
  const ControlEndpoint& endpoint() const;

  // The generation of leases from now on.
  void set_generation(int generation);

  struct Received {
    std::string peer;  // opaque
    ControlMessage message;
  };
  // Waits for messages, at most `timeout` or until one of `wake_descriptors` is readable. Renews leases that
  // are due. Returns the messages. Throws std::runtime_error.
  std::vector<Received> poll(std::chrono::milliseconds timeout, std::span<const int> wake_descriptors = {});

  // Sends to every peer that has sent a hello.
  void broadcast(const ControlMessage& message);
  void send(const std::string& peer, const ControlMessage& message);
  int num_peers() const;
  // Peers that sent a hello, but have not answered a lease that was sent `silence_s` seconds ago, or a
  // quarter of a lease's duration if their connection has ended. No peer becomes silent while the owner does
  // not call poll(), because no lease is sent.
  std::vector<std::string> silent_peers(double silence_s) const;
  // Time since the peer's current step began, as of its last message; 0 before its first message of the
  // current generation.
  double in_step_s(const std::string& peer) const;
  // Seconds since the last message of the peer; 0 for an unknown peer.
  double silence_s(const std::string& peer) const;

  // From now on, ignores messages of the peer and sends nothing to it.
  void drop(const std::string& peer);
  struct Dropped {
    std::string peer;
    std::string reason;
  };
  // Peers that poll() has dropped since the last call of this function.
  std::vector<Dropped> take_dropped();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sailor
