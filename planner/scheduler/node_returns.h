// Nodes of helper jobs on which other jobs would start if they were returned. Pure.
#pragma once

#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace sailor {

// A job that waits for nodes and nothing else.
struct JobInWait {
  enum class Use { free, helpers, others };  // who has the node now
  struct Node {
    std::string name;
    Use use = Use::free;
    bool required = false;
  };
  struct Part {  // of a heterogeneous job: a component
    size_t nodes = 1;
    size_t required = 0;        // number of nodes that it requires by name
    std::vector<Node> could{};  // all nodes that it could use, if nothing else ran there
  };
  std::vector<Part> parts;
  std::optional<double> limit_s{};     // time limit
  std::optional<double> start_in_s{};  // expected start
};

// Takes waiting jobs in the order of their priority. A job that cannot start keeps all nodes that it could
// use from jobs behind it, but for those that end before its expected start. Reservations, switches and
// licenses are not considered.
class NodeReturns {
 public:
  // The nodes of helper jobs that this job lacks: none if it could start without them, or not even with them.
  // Nodes that it requires are chosen first, then free ones, at most as many as it needs.
  std::vector<std::string> wanted_by(const JobInWait& job);

 private:
  struct Choice {
    std::set<std::string> nodes;
    std::vector<std::string> returned;
    bool starts = true;
  };
  void add(const JobInWait::Part& part, double limit_s, Choice& choice) const;

  std::map<std::string, double> free_for_s_;  // nodes that jobs in front have or will have, from then on
};

}  // namespace sailor
