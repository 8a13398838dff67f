// Internal to the socket plane: state that the listener's accepting thread shares with the factories. See
// socket_plane.h.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "planner/process/file_descriptor.h"
#include "trainer/comm/handshake.h"

namespace sailor {

// An eventfd: wake() makes it readable until drain().
class WakeUp {
 public:
  WakeUp();
  void wake() noexcept;
  void drain() noexcept;
  int fd() const { return fd_.get(); }

 private:
  FileDescriptor fd_;
};

struct Listener::State {
  explicit State(const std::string& address);
  ~State();

  void start(const JobSecret& secret);
  struct Accepted {
    FileDescriptor fd;
    StreamKeys keys{};
  };
  // Waits for the connection with this introduction. Returns an invalid descriptor at the deadline or when
  // `cancelled`.
  Accepted take(const Introduction& who, std::chrono::steady_clock::time_point deadline,
                const std::atomic<bool>& cancelled);
  // Wakes every take(), which then checks `cancelled`.
  void nudge();
  // Rejects further connections of this scope.
  void retire(const std::string& scope);

  uint16_t port = 0;

 private:
  struct Stranger;  // a connection that is not authenticated yet
  void run();
  // Whether another connection can be accepted: there is a free place, or one can be replaced.
  bool has_place() const;
  // When all places are taken: the oldest connection from the address that has most of them, if it has had a
  // second for its handshake; otherwise the end of the list. So silent connections from one address do not
  // keep others out.
  std::list<Stranger>::const_iterator replaceable() const;
  void admit();
  // False if the connection is to be dropped or was handed over.
  bool advance(Stranger& stranger);

  FileDescriptor listening_;
  WakeUp stop_;
  std::atomic<bool> stopping_{false};
  JobSecret secret_{};
  std::list<Stranger> strangers_;  // owned by the accepting thread

  std::mutex mutex_;
  std::condition_variable arrived_;
  std::map<Introduction, Accepted> ready_;
  std::set<std::string> retired_;
  std::thread thread_;
};

}  // namespace sailor
