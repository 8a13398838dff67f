// Nodes that a job lost and still holds: an agent is started on them again and again, more and more seldom,
// until one says hello or the job ends.
//
// Starting is the owner's: due() says where. Times are seconds on any clock that does not go back. Not
// thread-safe.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

namespace sailor {

class LostNodes {
 public:
  void lost(const std::string& node, double now_s);
  // It is well again, or no business of the job any more. Whether it was among the lost ones.
  bool back(const std::string& node) { return nodes_.erase(node) > 0; }

  // Where an agent is to be started now, in order of names.
  std::vector<std::string> due(double now_s) const;
  // The child of this process that starts it.
  void starting(const std::string& node, pid_t child);
  // A child has ended; one that was no start of these is ignored.
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
