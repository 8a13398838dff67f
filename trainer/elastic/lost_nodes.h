// Lost nodes that are still allocated to the job. An agent is started on them repeatedly, with increasing
// delays, until one joins or the job ends.
//
// The owner starts agents on the nodes of due(). Times are seconds on any monotonic clock. Not thread-safe.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

namespace sailor {

class LostNodes {
 public:
  void lost(const std::string& node, double now_s);
  // The node is back, or no longer part of the job. Returns whether it was lost.
  bool back(const std::string& node) { return nodes_.erase(node) > 0; }

  // Nodes on which to start an agent now, sorted by name.
  std::vector<std::string> due(double now_s) const;
  // The child process that starts the agent.
  void starting(const std::string& node, pid_t child);
  // A child has ended. Ignores children that are not among these starts.
  void child_ended(pid_t child, double now_s);

 private:
  struct Node {
    double next_try_s = 0;
    double delay_s = 0;
    pid_t starting = -1;
  };
  std::map<std::string, Node> nodes_;
};

}  // namespace sailor
