// Would a job finish earlier if it waited for nodes that other jobs use now? Those jobs end at their time
// limits at the latest. The plan for the nodes that are free by then is compared with the plan for now, over
// all steps of the training. An estimate: other jobs may queue for the same nodes, and jobs end early. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/search/search.h"
#include "planner/spec/snapshot.h"
#include "planner/start/choose_start.h"

namespace sailor {

struct WaitingOffer {
  double wait_s = 0;
  double earlier_s = 0;                  // time by which the training ends before the one that starts now
  int more_gpus = 0;                     // additional GPUs of the plan; may be negative
  std::vector<std::string> later_nodes;  // busy nodes that become free after the wait, or at an unknown time
};

// Checks the next few times at which nodes become free, with `effort_s` for all of them; nothing if none of
// them makes up for the wait. `now` is the plan for snapshot.nodes.
std::optional<WaitingOffer> worth_waiting(const Snapshot& snapshot, const Candidate& now, int64_t steps,
                                          double effort_s, const ShortSearch& plan);

// `note: waiting until 14:05 for 8 more GPUs would end the training 35 min earlier: --sailor-wait=nodes`,
// with options that exclude later nodes from such a plan. `clock_s` is now, seconds since the epoch; times
// are local.
std::string waiting_text(const WaitingOffer& offer, int64_t clock_s);

// `14:05`; with the date if it is not today.
std::string local_time_text(int64_t time_s, int64_t now_s);

}  // namespace sailor
