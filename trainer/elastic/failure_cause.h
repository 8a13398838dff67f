// Finds the cause of a job's failure among all reported errors. A failure has echoes: ranks that wait for a
// dead rank lose the connection to it, and often report first. So a specific error takes precedence over a
// lost node, and a lost node over a lost connection. If there are only echoes, the decision waits briefly for
// a cause.
//
// Pure bookkeeping: times are seconds on any clock that does not go back. Not thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace sailor {

class FailureCause {
 public:
  // A specific error. The first one counts.
  void fail(const std::string& text);
  // A node is lost with all its processes. The first one counts.
  void node_lost(const std::string& text);
  // `rank` lost the connection to `lost_peer` (-1 = unknown).
  void echo(int rank, int lost_peer, const std::string& text);
  // All processes have been told to end: later errors are not causes.
  void close();

  // One line with the best known cause; nothing if there is no error.
  std::optional<std::string> text() const;
  // Whether that is final: the cause is known, or the waiting time since the first call is over.
  bool decided(double now_s);

 private:
  struct Echo {
    int rank, lost_peer;
    std::string text;
  };
  std::optional<std::string> cause_, node_lost_;
  std::vector<Echo> echoes_;  // in the order of their arrival
  std::optional<double> since_s_;
  bool closed_ = false;
};

}  // namespace sailor
