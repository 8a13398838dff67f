// Nodes that died without a word, before the scheduler knows: the ranks beside them fail first, because they
// lose their peers. A job that ends then has failed. One that is still there when the scheduler notices is
// put into the queue again.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "planner/scheduler/scheduler.h"
#include "trainer/launch/requeue.h"

namespace sailor {

struct SilentNodesWait {
  std::function<bool()> told;                          // polled: this process is told to end
  std::function<void(const std::string& text)> say{};  // a line for the user
  PassingTime time{};
};

// For a job with a rank that failed and no other steps: returns when every one of `nodes` has run a step that
// does nothing, at once if they are well. While one does not, waits for the scheduler, which ends this
// process: for ten minutes, and up to an hour while it says that such a node does not respond.
void wait_for_silent_nodes(Scheduler& scheduler, const std::vector<AllocatedNode>& nodes,
                           const SilentNodesWait& wait);

}  // namespace sailor
