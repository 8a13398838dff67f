// Data plane `socket`: ranks are processes that communicate over TCP, with one connection per pair of members
// of each communicator.
//
//     Listener listener;             // bound at once; its port goes into the bootstrap
//     listener.start(secret);        // accepts from here on
//     SocketFactory factory(rank, endpoints, secret, listener);
//
// Every connection starts with a mutual challenge and response over the job's secret (handshake.h); peers
// that do not know it, or send garbage, are dropped without affecting others. Payload is encrypted and
// authenticated only with CommOptions::encrypt (sealed_stream.h).
//
// Progress does not depend on the trainer's thread: posted transfers continue while it computes
// (socket_engine.h).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trainer/comm/communicator.h"

namespace sailor {

// 32 random bytes that the ranks of one job share.
using JobSecret = std::array<unsigned char, 32>;
JobSecret make_job_secret();

// The address at which a rank accepts connections.
struct Endpoint {
  std::string host;  // name or address that the other ranks can reach
  uint16_t port = 0;
};

// The listening socket of a rank, with a thread that accepts and authenticates connections and assigns them
// to communicators. Thread-safe. One listener serves any number of factories in turn (one per generation).
class Listener {
 public:
  // Binds an ephemeral port on all interfaces, or on `address` only. Throws std::runtime_error.
  explicit Listener(const std::string& address = "");
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  uint16_t port() const;
  // Earlier connections wait in the kernel's queue. Call it once.
  void start(const JobSecret& secret);

  struct State;  // private to the plane
  State& state() { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

class SocketFactory : public CommFactory {
 public:
  // `endpoints` by rank of the job. `scope` separates communicators of different generations: all ranks of a
  // generation pass the same text, and a listener gets each text only once. The listener must outlive the
  // factory.
  SocketFactory(int rank, std::vector<Endpoint> endpoints, const JobSecret& secret, Listener& listener,
                CommOptions options = {}, std::string scope = "");
  ~SocketFactory() override;

  int rank() const override;
  int size() const override;
  void abort() noexcept override;

 protected:
  std::unique_ptr<Communicator> make(const std::string& name, const std::vector<int>& ranks,
                                     CommUse use) override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sailor
