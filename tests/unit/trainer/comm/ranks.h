// Runs a function as every rank of a small job, on threads, over any plane.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <ostream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "trainer/comm/socket_plane.h"
#include "trainer/comm/thread_plane.h"

namespace sailor {

// A plane in host memory, "thread", "socket" or "encrypted" (sockets, too), and optionally one on top of it:
// `above` makes its factory.
struct TestPlane {
  using Above = std::unique_ptr<CommFactory> (*)(CommFactory& below, CommOptions options);
  std::string below;
  Above above = nullptr;

  TestPlane(std::string plane, Above made_by = nullptr) : below(std::move(plane)), above(made_by) {}
  TestPlane(const char* plane) : TestPlane(std::string(plane)) {}
  std::string name() const { return above ? "over_" + below : below; }
  friend void PrintTo(const TestPlane& plane, std::ostream* out) { *out << plane.name(); }
};

// The factories of all ranks of a job; sockets are real, on the loopback interface.
class TestJob {
 public:
  TestJob(const TestPlane& plane, int size, CommOptions options = {std::chrono::seconds(20)})
      : hub_(size, options) {
    const bool sockets = plane.below != "thread";
    options.encrypt = plane.below == "encrypted";
    const JobSecret secret = make_job_secret();
    std::vector<Endpoint> endpoints;
    for (int rank = 0; rank < size && sockets; ++rank) {
      listeners_.push_back(std::make_unique<Listener>("127.0.0.1"));
      listeners_.back()->start(secret);
      endpoints.push_back({"127.0.0.1", listeners_.back()->port()});
    }
    for (int rank = 0; rank < size; ++rank) {
      if (sockets) {
        factories_.push_back(std::make_unique<SocketFactory>(
            rank, endpoints, secret, *listeners_[static_cast<std::size_t>(rank)], options));
      } else {
        factories_.push_back(hub_.factory(rank));
      }
      if (!plane.above) continue;
      below_.push_back(std::move(factories_.back()));
      factories_.back() = plane.above(*below_.back(), options);
    }
  }

  CommFactory& factory(int rank) { return *factories_[static_cast<std::size_t>(rank)]; }
  int size() const { return static_cast<int>(factories_.size()); }
  uint16_t port(int rank) const { return listeners_[static_cast<std::size_t>(rank)]->port(); }

  // Calls `body` on a thread per rank. If one throws, the others are aborted and the first exception is
  // rethrown.
  void run(const std::function<void(CommFactory&)>& body) {
    std::vector<std::thread> threads;
    std::exception_ptr first;
    std::mutex mutex;
    for (int rank = 0; rank < size(); ++rank) {
      threads.emplace_back([&, rank] {
        try {
          body(factory(rank));
        } catch (...) {
          const std::lock_guard lock(mutex);
          if (!first) first = std::current_exception();
          for (const auto& f : factories_) f->abort();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    if (first) std::rethrow_exception(first);
  }

 private:
  ThreadHub hub_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::vector<std::unique_ptr<CommFactory>> below_;
  std::vector<std::unique_ptr<CommFactory>> factories_;
};

inline std::vector<int> all_ranks(int size) {
  std::vector<int> ranks;
  for (int rank = 0; rank < size; ++rank) ranks.push_back(rank);
  return ranks;
}

}  // namespace sailor
