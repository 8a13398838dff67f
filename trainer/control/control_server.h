// The controller's end of the control channel: a ZeroMQ ROUTER with CURVE encryption. Only peers that know
// the controller's public key and hold the job's client key get through; others are dropped during the
// handshake. Of those that get in, one that sends what cannot be read, more than 16 MiB at once, or a message
// twice is dropped: nothing of it is heard again, and its lease runs out.
//
// Single-threaded by intent: leases are renewed only while the owner calls poll(), so that a controller that
// hangs loses its ranks as one that died does. Not thread-safe.
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
    std::string bind_address = "*";  // "127.0.0.1" keeps it on this machine
    double lease_s = 15;
    double lease_period_s = 1;  // time between two renewals
  };

  // Binds to a free port and makes the keys of the job. Throws std::runtime_error.
  ControlServer();
  explicit ControlServer(Options options);
  ~ControlServer();
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

  // What peers need to connect; addresses are this machine's.
  const ControlEndpoint& endpoint() const;

  // The generation that leases carry from now on.
  void set_generation(int generation);

  struct Received {
    std::string peer;  // opaque
    ControlMessage message;
  };
  // Waits up to `timeout` for messages or until one of `wake_descriptors` is readable; renews leases that are
  // due; returns what has arrived. Throws std::runtime_error.
  std::vector<Received> poll(std::chrono::milliseconds timeout, std::span<const int> wake_descriptors = {});

  // To every peer that has said hello.
  void broadcast(const ControlMessage& message);
  void send(const std::string& peer, const ControlMessage& message);
  int num_peers() const;
  // Peers that said hello, but have not answered a lease that they were given `silence_s` seconds ago. While
  // the owner does not call poll() nobody falls silent: no lease is given out.
  std::vector<std::string> silent_peers(double silence_s) const;
  // For how long the peer said, last time, that it is inside one step; 0 until it says so of the generation
  // in force.
  double in_step_s(const std::string& peer) const;
  // Seconds since the peer was last heard; 0 of one that is not known.
  double silence_s(const std::string& peer) const;

  // Nothing of the peer is heard or sent to it from now on.
  void drop(const std::string& peer);
  struct Dropped {
    std::string peer;
    std::string reason;
  };
  // Peers that poll() has dropped since the last call.
  std::vector<Dropped> take_dropped();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sailor
