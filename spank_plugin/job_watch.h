// Have others taken the nodes of a job, just before or after it was submitted? Queries slurmctld; needs an
// initialised libslurm in the process. Functions throw std::runtime_error when slurmctld does not answer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "spank_plugin/planning.h"
#include "spank_plugin/slurm/node_use.h"

namespace sailor {

// The first planned node for which `use` returns a reason, with the reason; nothing if there is none. Pure.
std::optional<std::string> first_in_use(const PlannedJob& planned, const std::vector<SlurmNode>& nodes,
                                        std::optional<std::string> (*use)(const SlurmNode&,
                                                                          const NodeNeeds&));

// A job just submitted.
struct FirstLook {
  bool pending = false;
  std::optional<std::string> taken;  // a node that others took first
};
// After a second: whether the job has started and, if not, whether others have its nodes. One RPC, two for a
// job that has not started, three when its nodes are in use.
FirstLook look_at(uint32_t job_id, const PlannedJob& planned);

// Waits until it has started, for up to four seconds: a heterogeneous job waits for the backfill scheduler.
bool starts_soon(uint32_t job_id);

}  // namespace sailor
