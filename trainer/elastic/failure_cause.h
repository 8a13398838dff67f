// What a job fails of, among all that is said to have gone wrong. A failure has echoes: who waits for a rank
// that died loses the connection to it, and often says so first. So what explains itself beats the loss of a
// node, and that beats a lost connection; and an echo alone waits a little for its cause.
//
// Pure bookkeeping: times are seconds on any clock that does not go back. Not thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace sailor {

class FailureCause {
 public:
  // Something that explains itself. The first one counts.
  void fail(const std::string& text);
  // A node is gone with all that ran on it. The first one counts.
  void node_lost(const std::string& text);
  // `rank` lost the connection to another one, `lost_peer` (-1 = none in particular).
  void echo(int rank, int lost_peer, const std::string& text);
  // Everybody has been told to end: how they end from now on says nothing of what went wrong.
  void close();

  // One line, when something went wrong: the most telling until now.
  std::optional<std::string> text() const;
  // Whether that is final: the cause is known, or has been waited for since the first time that this was
  // asked.
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
