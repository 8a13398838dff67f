// Would a job be done earlier if it waited for nodes that others hold now? Their jobs end at the latest when
// their time limits do; the plan for what is free by then is held against the plan for what is free now, over
// all steps of the training. An estimate: others may queue for the same nodes, and jobs end early. Pure.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "planner/search/search.h"
#include "planner/spec/snapshot.h"

namespace sailor {

struct WaitingOffer {
  double wait_s = 0;
  double earlier_s = 0;                  // by which the training ends before the one that starts now
  int more_gpus = 0;                     // of the plan, than now; may be negative
  std::vector<std::string> later_nodes;  // busy ones that come free after the wait, or nobody knows when
};

// Plans for one snapshot in at most that many seconds.
using ShortSearch = std::function<SearchResult(const Snapshot&, double time_limit_s)>;

// Looks at the next few times at which nodes come free, all within time_limit_s of planning; nothing when
// none of them makes up for the wait. `now` is the plan for snapshot.nodes.
std::optional<WaitingOffer> worth_waiting(const Snapshot& snapshot, const Candidate& now, int64_t steps,
                                          double time_limit_s, const ShortSearch& plan);

// `note: waiting until 14:05 for 8 more GPUs would end the training 35 min earlier: --sailor-wait=nodes`,
// with what keeps later nodes out of such a plan. `clock_s` is now, seconds since the epoch; times are local.
std::string waiting_text(const WaitingOffer& offer, int64_t clock_s);

// `14:05`; with the date when it is not today's.
std::string local_time_text(int64_t time_s, int64_t now_s);

}  // namespace sailor
